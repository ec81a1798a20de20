#include "job/roles/hub.hpp"

#include "base/log.hpp"
#include "cli/exit_status.hpp"
#include "runtime/real_world.hpp"
#include "transport/tcp/tcp_transport.hpp"

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

}  // namespace

std::unique_ptr<Transport> open_hub(const Hub& hub, int listener) {
  if (hub.session != nullptr) {
    return hub.session->listen({.token = hub.token, .shared_memory = hub.shared_memory});
  }
  return TcpTransport::listen(
      {.token = hub.token, .descriptor = listener, .shared_memory = hub.shared_memory});
}

std::unique_ptr<Transport> join_hub(const Hub& hub) {
  if (hub.session != nullptr) {
    return hub.session->join({.token = hub.token, .shared_memory = hub.shared_memory});
  }
  return TcpTransport::join(
      {.hub = hub.address, .token = hub.token, .shared_memory = hub.shared_memory});
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
