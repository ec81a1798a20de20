#include <fmt/format.h>

#include "base/errors.hpp"
#include "cli/command.hpp"
#include "cli/job_options.hpp"
#include "cli/train_options.hpp"
#include "config/option.hpp"

namespace syncopate::cli {
namespace {

const char* noun(Role role) {
  return role == Role::server ? "server" : "worker";
}

const char* description_of(Role role) {
  return role == Role::server ? "Join a job by hand, as a shard of its parameter server."
                              : "Join a job by hand, as one of its workers.";
}

std::uint32_t threads_in(const GivenOptions& given) {
  const auto threads = given.find("threads");
  return threads == given.end() ? 1 : config_of_joiner({}, {*threads}, "").threads;
}

JoinRequest request_of(const CLI::App& app, Role role) {
  const GivenOptions given = given_options(app);
  const std::string key = secret_of(app);
  return {.role = role,
          .address = required(app, "--join", "HOST:PORT, where the job's coordinator listens"),
          .token = key,
          .place = own_place_of(app),
          .encrypted = !key.empty(),
          .index = index_of(app),
          .gather_limit = gather_limit_of(app, patient_gather_limit),
          .given = given,
          .threads = threads_in(given),
          .verbosity = output_of(app).verbosity};
}

}  // namespace

Command add_joiner(CLI::App& root, const Handlers& handlers, Role role) {
  CLI::App* app = root.add_subcommand(noun(role), description_of(role));
  add_value(*app, "join", "HOST:PORT", "address of the job's coordinator")
      ->group(std::string(option_group::rendezvous));
  add_secret(*app, "none");
  add_index(*app, noun(role));
  add_own_place(*app);
  add_gather_limit(*app, patient_gather_limit);
  add_expectations(*app);
  add_output_options(*app, Says::lines);
  app->footer(
      fmt::format("Example:\n  syncopate {} --join node1:9091 --secret job.key\n\n"
                  "The coordinator describes the job. An option that contradicts it is "
                  "refused.",
                  noun(role)));
  return {app, [app, role, &handlers] { return handlers.join(request_of(*app, role)); }};
}

}  // namespace syncopate::cli
