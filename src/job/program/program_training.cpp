#include "job/program/program_training.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "job/launch/loop_config.hpp"

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
      servers_(servers_of(site_)) {
  if (const std::size_t bytes = site_.bytes_of_workers(); bytes > 0) {
    memory_ = shm::Segment::create(bytes);
  }
}

wire::Training ProgramTraining::described() const {
  wire::Training training;
  training.set_run_dir(std::filesystem::absolute(site_.config().run_dir).string());
  if (memory_) {
    const shm::SegmentAddress address = memory_->address();
    wire::Training::SharedMemory& memory = *training.mutable_memory();
    memory.set_machine(address.machine);
    memory.set_pid(address.pid);
    memory.set_number(address.descriptor);
    memory.mutable_secret()->Add(address.secret.begin(), address.secret.end());
  }
  return training;
}

void ProgramTraining::run(World& world, NodeService& service, CoordinatorEndpoint servers) {
  servers.address = world.transport().address();
  servers.transport = site_.config().transport;
  Membership::Options membership = membership_of(site_, options_.gather_limit, /*by_hand=*/false);
  membership.evaluators = 0;
  // A program that ends early has lost its part of the user's own work, too.
  membership.spares_workers = membership.spares_missing = false;
  std::optional<InProcessMembers> running;
  std::exception_ptr failure;
  try {
    run_coordinator(world, site_,
                    {.membership = membership,
                     .emit = options_.emit,
                     .interrupted = options_.interrupted,
                     .before_gathering = [&] { running.emplace(world, servers, servers_); },
                     .name = options_.name,
                     .hung = options_.hung,
                     .wall_time = options_.wall_time,
                     .service = &service});
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  if (running && failure) {
    running->cancel(failure);
  }
  if (running) {
    running->join();
  }
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
