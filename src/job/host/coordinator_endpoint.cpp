#include "job/host/coordinator_endpoint.hpp"

#include "base/log.hpp"
#include "job/launch/exit_status.hpp"
#include "runtime/real_world.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace syncopate {
namespace {

int warn_of(const std::exception& error) {
  log::warn("{}", error.what());
  return status_of(error);
}

}  // namespace

std::unique_ptr<Transport> listen(const CoordinatorEndpoint& endpoint, int listener) {
  if (endpoint.mpi != nullptr) {
    return endpoint.mpi->listen({.token = endpoint.token, .shared_memory = endpoint.shared_memory});
  }
  return TcpTransport::listen(
      {.token = endpoint.token, .descriptor = listener, .shared_memory = endpoint.shared_memory});
}

std::unique_ptr<Transport> connect(const CoordinatorEndpoint& endpoint) {
  if (endpoint.mpi != nullptr) {
    return endpoint.mpi->join({.token = endpoint.token, .shared_memory = endpoint.shared_memory});
  }
  return TcpTransport::join(
      {.hub = endpoint.address, .token = endpoint.token, .shared_memory = endpoint.shared_memory});
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
