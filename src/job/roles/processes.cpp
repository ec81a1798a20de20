#include "job/roles/processes.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/exit_status.hpp"
#include "job/launch/watched_job.hpp"

namespace syncopate::cli {
namespace {

bool left_something(const TrainConfig& config, int status) {
  return status != exit_status::refused ||
         std::filesystem::exists(RunFolder(config.run_dir).worker_log(Rank{0}));
}

}  // namespace

bool shares_process(const TrainConfig& config) {
  return config.server_process == ServerProcess::shared;
}

Child coordinator_process(const Job& job, Listener listener, Descriptor events,
                          CoordinateOptions options) {
  options.listener = listener.socket.get();
  options.events = events.get();
  Child child{.name = "coordinator", .body = [&job, options] { return coordinate(job, options); }};
  child.alone.push_back(std::move(listener.socket));
  child.alone.push_back(std::move(events));
  return child;
}

Child worker_process(const Job& job, const Hub& hub, Rank rank) {
  Child child{.name = fmt::format("worker {}", rank.value), .body = [&job, hub, rank] {
                return run_member(hub, [&] { return make_worker(job, rank); });
              }};
  child.may_be_lost = job.plan().membership().spares(rank);
  return child;
}

Child server_process(const Job& job, const Hub& hub, Rank shard) {
  return {.name = fmt::format("server {}", shard.value), .body = [&job, hub, shard] {
            return run_member(hub, [&] { return make_server(job, shard); });
          }};
}

std::vector<Child> worker_processes(const Job& job, const Hub& hub) {
  std::vector<Child> children;
  for (std::uint32_t rank = 0; rank < job.config().workers; ++rank) {
    children.push_back(worker_process(job, hub, Rank{rank}));
  }
  return children;
}

std::function<std::vector<std::unique_ptr<Candidate>>()> servers_within(const Job& job) {
  return [&job] {
    std::vector<std::unique_ptr<Candidate>> servers;
    const std::uint32_t within = shares_process(job.config()) ? job.plan().membership().servers : 0;
    for (std::uint32_t shard = 0; shard < within; ++shard) {
      servers.push_back(make_server(job, Rank{shard}));
    }
    return servers;
  };
}

std::vector<Child> server_processes(const Job& job, const Hub& hub) {
  const std::uint32_t servers = shares_process(job.config()) ? 0 : job.plan().membership().servers;
  std::vector<Child> children;
  for (std::uint32_t shard = 0; shard < servers; ++shard) {
    children.push_back(server_process(job, hub, Rank{shard}));
  }
  return children;
}

Child evaluator_process(const Job& job, const Hub& hub) {
  return {.name = "evaluator",
          .body = [&job, hub] { return run_member(hub, [&] { return make_evaluator(job); }); }};
}

int run_claimed(RunClaim& claim, Supervisor::Options job) {
  const TrainCommand& command = claim.command();
  const int status = run_watched(command, std::move(job));
  if (left_something(command.config, status)) {
    claim.keep();
  }
  return status;
}

}  // namespace syncopate::cli
