#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/time.hpp"
#include "job/host/host_site.hpp"
#include "job/launch/known_coordinator.hpp"
#include "job/launch/own_place.hpp"
#include "job/members/members.hpp"
#include "report/recorder.hpp"
#include "spec/config.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate {

/// The address at which the members of a job reach its coordinator.
struct CoordinatorEndpoint {
  std::string address;  ///< address of a socket; empty for MPI ranks, which reach rank 0 over MPI
  std::string token;
  TransportKind transport = TransportKind::shm;
  mpi::Session* session = nullptr;  ///< session of transport mpi
  /// HOST:PORT at which a joining node listens; port 0 selects a free port. Empty: a free port of
  /// the address from which it reaches the coordinator.
  std::string own_address = {};
  OwnPlace own_place = {};   ///< an interface in place of that address, and ports
  bool encrypted = false;    ///< the token is a key that the user has given to all hosts
  bool unencrypted = false;  ///< nodes may be beyond loopback: the network is trusted
};

/// As a node sees it that joins.
CoordinatorEndpoint endpoint_of(const KnownCoordinator& known, TransportKind transport);

/// Returns the transport of node 0. `listener`: the listening socket of an endpoint with an
/// address; the transport owns it.
std::unique_ptr<Transport> listen(const CoordinatorEndpoint& endpoint, int listener);

/// Returns the transport of a node other than node 0, connected to the coordinator.
std::unique_ptr<Transport> connect(const CoordinatorEndpoint& endpoint);

/// Logs the reason for which the coordinator regards this process as hung, and the stacks of its
/// threads if the program has called `prepare_thread_stacks`.
void report_hang(const std::string& reason);

/// Connects to the coordinator, and does a member's work in its world. Returns the exit status.
/// Logs an error only if it could not connect: the coordinator reports every later error.
int run_member(const CoordinatorEndpoint& endpoint, const std::function<void(World&)>& member);

using MakeMember = std::function<std::unique_ptr<RoleRunner>()>;

/// Makes a member and runs it: the body of a process. Returns the exit status.
int run_member(const CoordinatorEndpoint& endpoint, const MakeMember& make);

using MakeMembers = std::function<std::vector<std::unique_ptr<RoleRunner>>()>;

/// Members in the coordinator's process, each a separate node on a separate thread. They end with
/// the coordinator's transport, or by `cancel`; the destructor waits for them.
class InProcessMembers {
 public:
  /// The members outlive this object.
  InProcessMembers(World& world, const CoordinatorEndpoint& endpoint,
                   const std::vector<std::unique_ptr<RoleRunner>>& members);

  /// Ends members that an error has left behind. No effect on one that has left.
  void cancel(const std::exception_ptr& why);
  /// Waits until every member has left.
  void join();

 private:
  void run(const CoordinatorEndpoint& endpoint, RoleRunner& member);
  void enter(World& world);
  void leave(World& world);

  Mutex mutex_;
  std::vector<World*> worlds_ GUARDED_BY(mutex_);  ///< of members that run
  std::exception_ptr cancelled_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Task>> tasks_;  ///< last: they use the members above
};

struct CoordinateOptions {
  int listener = -1;  ///< listening socket of an endpoint with an address; `coordinate` owns it
  int events = -1;    ///< descriptor that receives one line of JSON per event
  CoordinatorEndpoint endpoint;
  Duration gather_limit{};
  bool by_hand = false;       ///< the user starts the members, so their agreement is checked
  std::string key_file = {};  ///< file of a key that a coordinator `by_hand` has made itself
  std::string note = {};      ///< shown at the start; if empty, `by_hand` shows its address
  /// Makes the members of this process, one after the other, because they may draw random numbers
  /// from one global generator, such as libtorch's.
  MakeMembers in_process = [] { return std::vector<std::unique_ptr<RoleRunner>>{}; };
};

/// Returns the membership options of a job on real hosts.
Membership::Options membership_of(const HostSite& site, Duration gather_limit, bool by_hand);

/// Runs the coordinator, and the members that share its process, to the end of the job. Returns the
/// exit status; the last event says how the job ended.
int coordinate(const HostSite& site, const CoordinateOptions& options);

}  // namespace syncopate
