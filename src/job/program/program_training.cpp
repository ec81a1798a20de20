#include "job/program/program_training.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/random.hpp"
#include "job/launch/loop_config.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

/// A folder that the user has named is that of the first training; RUN-2, RUN-3 and so on follow.
JobRequest request_of(const ProgramTraining::Options& options) {
  GivenOptions given = options.definition.options;
  const auto run_dir = given.find("run-dir");
  if (run_dir != given.end() && options.number > 1) {
    const auto folder = (std::filesystem::path(run_dir->second) / "").parent_path();
    run_dir->second = fmt::format("{}-{}", folder.string(), options.number);
  }
  return {.config = loop_config(given, options.programs), .named_run_dir = run_dir != given.end()};
}

std::vector<std::unique_ptr<RoleRunner>> servers_of(const LoopSite& site) {
  const MemberRole& role = member_role(Role::server);
  std::vector<std::unique_ptr<RoleRunner>> servers;
  for (std::uint32_t shard = 0; shard < role.count(site.plan().membership()); ++shard) {
    servers.push_back(role.make(site, Rank{shard}));
  }
  return servers;
}

}  // namespace

ProgramTraining::ProgramTraining(Options options)
    : options_(std::move(options)),
      claim_(request_of(options_)),
      site_(claim_.request().config, options_.definition.model),
      servers_(servers_of(site_)),
      token_(unguessable_token()) {
  if (const std::size_t bytes = site_.bytes_of_workers(); bytes > 0) {
    memory_ = shm::Segment::create(bytes);
  }
  auto transport =
      listen_over(name_of_value(site_.config().transport), {.token = token_,
                                                            .address = options_.address,
                                                            .unencrypted = options_.unencrypted,
                                                            .control_only = true});
  address_ = transport->address();
  world_.emplace(std::move(transport));
  running_.emplace(*world_,
                   CoordinatorEndpoint{.address = address_,
                                       .token = token_,
                                       .transport = site_.config().transport,
                                       .own_address = options_.address,
                                       .unencrypted = options_.unencrypted},
                   servers_);
}

wire::Training ProgramTraining::described() const {
  wire::Training training;
  training.set_address(address_);
  training.set_token(token_);
  training.set_run_dir(std::filesystem::absolute(site_.config().run_dir).string());
  if (memory_) {
    *training.mutable_memory() = to_wire(memory_->address());
  }
  return training;
}

void ProgramTraining::run() {
  Membership::Options membership = membership_of(site_, options_.gather_limit, /*by_hand=*/false);
  membership.evaluators = 0;
  // A program that ends early has lost its part of the user's own work, too.
  membership.spares_workers = membership.spares_missing = false;
  std::exception_ptr failure;
  try {
    run_coordinator(*world_, site_,
                    {.membership = membership,
                     .emit = options_.emit,
                     .interrupted = options_.interrupted,
                     .name = options_.name,
                     .hung = options_.hung,
                     .wall_time = options_.wall_time});
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  world_->transport().close(world_->now());  // ends servers that an error left behind
  running_->join();
  keep_folder();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

/// A job that was refused before its first round leaves nothing in its folder.
void ProgramTraining::keep_folder() {
  std::error_code unknown;  // then it stays
  if (std::filesystem::exists(site_.folder().worker_log(Rank{0}), unknown) || unknown) {
    claim_.keep();
  }
}

}  // namespace syncopate
