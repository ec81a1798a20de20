#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "job/host/host_site.hpp"
#include "job/members/members.hpp"
#include "job/spec/config.hpp"
#include "report/recorder.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate {

/// The address at which the members of a job reach its coordinator.
struct CoordinatorEndpoint {
  std::string address;  ///< of a socket; empty for ranks of MPI, which reach rank 0
  std::string token;
  TransportKind transport = TransportKind::shm;
  mpi::Session* session = nullptr;  ///< of transport mpi
  /// HOST:PORT where a node that joins listens; port 0: a free one.
  std::string own_address = "127.0.0.1:0";
  bool unencrypted = false;  ///< that may be beyond loopback: the network is trusted
};

/// The transport of node 0. `listener`: a listening socket to own, of an endpoint with an address.
std::unique_ptr<Transport> listen(const CoordinatorEndpoint& endpoint, int listener);

/// The transport of another node.
std::unique_ptr<Transport> connect(const CoordinatorEndpoint& endpoint);

/// Logs why this process is said to hang, and the stacks of its threads, in a program that has
/// called `prepare_thread_stacks`.
void report_hang(const std::string& reason);

/// Joins the job and does the work of the role. Returns the exit status. Logs an error only where
/// the member could not join: otherwise the coordinator reports it.
int run_member(const CoordinatorEndpoint& endpoint, RoleRunner& member);

using MakeMember = std::function<std::unique_ptr<RoleRunner>()>;

/// Makes a member and runs it: the body of a process. Returns the exit status.
int run_member(const CoordinatorEndpoint& endpoint, const MakeMember& make);

using MakeMembers = std::function<std::vector<std::unique_ptr<RoleRunner>>()>;

/// Members in the coordinator's process, each a separate node on a separate thread. They end with
/// the coordinator's transport; the destructor waits for them.
class InProcessMembers {
 public:
  /// The members outlive this object.
  InProcessMembers(World& world, const CoordinatorEndpoint& endpoint,
                   const std::vector<std::unique_ptr<RoleRunner>>& members);

  /// Waits until every member has left.
  void join();

 private:
  std::vector<std::unique_ptr<Task>> tasks_;
};

struct CoordinateOptions {
  int listener = -1;  ///< a listening socket to own, of an endpoint with an address
  int events = -1;    ///< receives one line of JSON per event
  CoordinatorEndpoint endpoint;
  Duration gather_limit{};
  bool by_hand = false;       ///< the user starts the members, so their agreement is checked
  std::string key_file = {};  ///< of a coordinator `by_hand`: the file of a key that it made itself
  std::string note = {};      ///< shown at the start; empty: where a coordinator `by_hand` listens
  /// Makes the members of this process, one after the other, because they may draw from one global
  /// generator, such as libtorch's.
  MakeMembers in_process = [] { return std::vector<std::unique_ptr<RoleRunner>>{}; };
};

/// The options of the membership of a job on real hosts.
Membership::Options membership_of(const HostSite& site, Duration gather_limit, bool by_hand);

/// The process of the coordinator, and of the members that share it. Returns its exit status; the
/// last event says how the job ended.
int coordinate(const HostSite& site, const CoordinateOptions& options);

}  // namespace syncopate
