#include "job/host/coordinator_endpoint.hpp"

#include "base/log.hpp"
#include "job/launch/exit_status.hpp"
#include "runtime/real_world.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

int warn_of(const std::exception& error) {
  log::warn("{}", error.what());
  return status_of(error);
}

/// Processes that no launcher of MPI has started try shared memory first.
std::string_view transport_of(TransportKind kind) {
  return name_of_value(kind == TransportKind::automatic ? TransportKind::shm : kind);
}

}  // namespace

std::unique_ptr<Transport> listen(const CoordinatorEndpoint& endpoint, int listener) {
  return listen_over(
      transport_of(endpoint.transport),
      {.token = endpoint.token, .descriptor = listener, .session = endpoint.session});
}

std::unique_ptr<Transport> connect(const CoordinatorEndpoint& endpoint) {
  return join_over(
      transport_of(endpoint.transport),
      {.token = endpoint.token, .coordinator = endpoint.address, .session = endpoint.session});
}

int run_member(const CoordinatorEndpoint& endpoint, RoleRunner& member) {
  try {
    RealWorld world(connect(endpoint));
    try {
      member.run(world);
    } catch (const std::exception& error) {
      log::debug("{}", error.what());  // the coordinator reports it
      return status_of(error);
    }
    return exit_status::success;
  } catch (const std::exception& error) {
    return warn_of(error);
  }
}

int run_member(const CoordinatorEndpoint& endpoint, const MakeMember& make) {
  try {
    const auto member = make();
    return run_member(endpoint, *member);
  } catch (const std::exception& error) {
    return warn_of(error);
  }
}

}  // namespace syncopate
