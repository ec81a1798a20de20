#include "job/roles/hub.hpp"

#include "base/log.hpp"
#include "cli/exit_status.hpp"
#include "runtime/real_world.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::cli {
namespace {

/// What has already joined the job leaves the telling to the coordinator.
int quietly(const std::exception& error) {
  log::debug("{}", error.what());
  return status_of(error);
}

int loudly(const std::exception& error) {
  log::warn("{}", error.what());
  return status_of(error);
}

/// Processes that no launcher of MPI has started try shared memory first.
std::string_view transport_of(TransportKind kind) {
  return name_of_value(kind == TransportKind::automatic ? TransportKind::shm : kind);
}

}  // namespace

std::unique_ptr<Transport> open_hub(const Hub& hub, int listener) {
  return listen_over(transport_of(hub.transport),
                     {.token = hub.token, .descriptor = listener, .session = hub.session});
}

std::unique_ptr<Transport> join_hub(const Hub& hub) {
  return join_over(transport_of(hub.transport),
                   {.token = hub.token, .coordinator = hub.address, .session = hub.session});
}

int run_member(const Hub& hub, Candidate& candidate) {
  try {
    RealWorld world(join_hub(hub));
    try {
      candidate.take_part(world);
    } catch (const std::exception& error) {
      return quietly(error);
    }
    return exit_status::success;
  } catch (const std::exception& error) {
    return loudly(error);
  }
}

int run_member(const Hub& hub, const std::function<std::unique_ptr<Candidate>()>& make) {
  try {
    const auto candidate = make();
    return run_member(hub, *candidate);
  } catch (const std::exception& error) {
    return loudly(error);
  }
}

}  // namespace syncopate::cli
