#pragma once

#include <functional>
#include <memory>
#include <string>

#include "job/roles/members.hpp"
#include "job/spec/config.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate::cli {

/// Where the members of a job find its coordinator.
struct Hub {
  std::string address;  ///< of a socket; without one, ranks of MPI find rank 0
  std::string token;
  TransportKind transport = TransportKind::shm;
  mpi::Session* session = nullptr;
};

/// The transport of node 0. `listener`: a listening socket to own, of a hub that has an address.
std::unique_ptr<Transport> open_hub(const Hub& hub, int listener);

/// The transport of another node.
std::unique_ptr<Transport> join_hub(const Hub& hub);

/// Joins the job and takes part. Returns the exit status; the coordinator says for all why a job failed.
int run_member(const Hub& hub, Candidate& candidate);

/// Makes a member and runs it: the body of a process. Returns the exit status, and has then said why the member
/// could not be made.
int run_member(const Hub& hub, const std::function<std::unique_ptr<Candidate>()>& make);

}  // namespace syncopate::cli
