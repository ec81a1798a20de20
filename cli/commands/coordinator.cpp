#include "cli/command.hpp"
#include "cli/job_options.hpp"
#include "cli/train_options.hpp"
#include "config/option.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* coordinator_examples = R"(Example:
  syncopate coordinator --listen 127.0.0.1:9091 --network lenet5 --workers 2
  syncopate worker --join 127.0.0.1:9091 --secret FILE     (twice)

On several hosts:
  syncopate key new job.key                                (and copy it to each host)
  syncopate coordinator --listen node1:9091 --secret job.key --network lenet5 --workers 2
  syncopate worker --join node1:9091 --secret job.key      (on each host)

The coordinator holds the configuration, tests the model, shows the job and keeps its run folder.
Without --secret, it makes a new key and shows the command that joins the job.)";

}  // namespace

Command add_coordinator(CLI::App& root, const Handlers& handlers) {
  CLI::App* app = root.add_subcommand("coordinator",
                                      "Start a job whose workers and servers are started by hand.");
  add_value(*app, "listen", "HOST:PORT",
            "address for workers and servers to join, beyond this host only with a key; port 0 "
            "chooses a free port")
      ->group(std::string(option_group::rendezvous));
  add_secret(*app, "a new key for this host alone");
  add_gather_limit(*app, patient_gather_limit);
  add_train_options(*app);
  app->footer(coordinator_examples);
  return {app, [app, &handlers] {
            CoordinateRequest request{.job = {},
                                      .address = required(*app, "--listen", "HOST:PORT"),
                                      .key = secret_of(*app)};
            const TrainCommand job = job_of(*app, handlers);
            request.job = job.request;
            request.job.gather_limit = gather_limit_of(*app, patient_gather_limit);
            return handlers.coordinate({.request = std::move(request), .json = job.json});
          }};
}

}  // namespace syncopate::cli
