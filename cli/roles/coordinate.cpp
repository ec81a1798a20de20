#include "cli/roles/coordinate.hpp"

#include <fmt/format.h>

#include <thread>
#include <vector>

#include "base/errors.hpp"
#include "cli/exit_status.hpp"
#include "cli/roles/outside.hpp"
#include "cli/roles/processes.hpp"
#include "cluster/coordinator.hpp"
#include "cluster/real_world.hpp"
#include "train/recorder.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace syncopate::cli {
namespace {

Membership::Options membership_of(const Job& job, const CoordinateOptions& options) {
  Membership::Options membership = job.plan().membership();
  membership.gathering = options.gather_limit;
  if (options.by_hand) {
    membership.agreement = job.agreement();
  }
  return membership;
}

/// Servers in this process, each a node of its own. They end with the coordinator's transport.
std::vector<std::unique_ptr<Task>> start_servers(const Job& job, World& world, const Hub& hub) {
  std::vector<std::unique_ptr<Task>> servers;
  if (!shares_process(job.config())) {
    return servers;
  }
  for (std::uint32_t shard = 0; shard < job.plan().membership().servers; ++shard) {
    servers.push_back(world.spawn(fmt::format("server {}", shard), [&job, hub, shard] {
      run_member(hub, [&] { return make_server(job, Rank{shard}); });
    }));
  }
  return servers;
}

void run_job(const Job& job, const CoordinateOptions& options, World& world, Recorder& recorder) {
  Coordinator coordinator(world, recorder,
                          {.membership = membership_of(job, options),
                           .pacing = job.plan().pacing(job.rounds_done()),
                           .description = job.description()});
  coordinator.run();
  recorder.finish();
}

}  // namespace

int coordinate(const Job& job, const CoordinateOptions& options) {
  heed_wish_for_end();
  const bool shared_memory = job.config().transport == "shm";
  RealWorld world(TcpTransport::listen(
      {.token = options.token, .descriptor = options.listener, .shared_memory = shared_memory}));
  const auto emit = [&](const Recorder::Json& event) { emit_line(options.events, event); };
  Recorder recorder(world, {.config = job.config(),
                            .folder = job.folder(),
                            .cores = std::thread::hardware_concurrency(),
                            .resumed = job.resume_from().has_value(),
                            .emit = emit,
                            .interrupted = end_is_wished});
  const std::string address = world.transport().address();
  if (options.by_hand) {
    const std::string listening = fmt::format("listening at {}", address);
    emit({{"event", "note"}, {"text", options.note.empty() ? listening : options.note}});
  }
  const auto servers = start_servers(
      job, world, {.address = address, .token = options.token, .shared_memory = shared_memory});
  int status = exit_status::success;
  try {
    run_job(job, options, world, recorder);
  } catch (const std::exception& error) {
    recorder.fail(error);
    status = status_of(error);
  }
  world.transport().close(world.now());  // which ends servers that an error left behind
  return status;
}

}  // namespace syncopate::cli
