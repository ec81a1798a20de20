#pragma once

#include <functional>
#include <memory>
#include <string>

#include "job/members/members.hpp"
#include "job/spec/config.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate {

/// Where the members of a job reach its coordinator.
struct CoordinatorEndpoint {
  std::string address;  ///< of a socket; empty for ranks of MPI, which reach rank 0
  std::string token;
  TransportKind transport = TransportKind::shm;
  mpi::Session* session = nullptr;  ///< of transport mpi
};

/// The transport of node 0. `listener`: a listening socket to own, of an endpoint with an address.
std::unique_ptr<Transport> listen(const CoordinatorEndpoint& endpoint, int listener);

/// The transport of another node.
std::unique_ptr<Transport> connect(const CoordinatorEndpoint& endpoint);

/// Joins the job and does the work of the role. Returns the exit status. Logs an error only where
/// the member could not join: otherwise the coordinator reports it.
int run_member(const CoordinatorEndpoint& endpoint, RoleRunner& member);

using MakeMember = std::function<std::unique_ptr<RoleRunner>()>;

/// Makes a member and runs it: the body of a process. Returns the exit status.
int run_member(const CoordinatorEndpoint& endpoint, const MakeMember& make);

}  // namespace syncopate
