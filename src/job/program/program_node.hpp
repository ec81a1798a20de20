#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "collective/group.hpp"
#include "data/lease_book.hpp"
#include "job/launch/program_environment.hpp"
#include "job/program/loop_definition.hpp"
#include "job/program/program_group.hpp"
#include "membership/member_link.hpp"
#include "runtime/real_world.hpp"

namespace syncopate {

/// The node of one program among all programs of its job. Its collectives need no training; a
/// training has its worker here, too.
///
/// Thread: one; `ask`, `await_lease`, `end_of_job`, `now` and `close` any.
class ProgramNode {
 public:
  /// Waits until all programs have come. A wait in a collective of all of them takes at most
  /// `wait_limit`. Errors: ConfigError, where the coordinator refuses this one; PeerLost, TimedOut;
  /// Cancelled, here and wherever the program waits for others, if it is interrupted
  /// (`interruption`).
  ProgramNode(const ProgramLaunch& launch, TransportKind transport, Duration wait_limit);
  /// Leaves: the others see this node as lost.
  ~ProgramNode();
  ProgramNode(const ProgramNode&) = delete;
  ProgramNode& operator=(const ProgramNode&) = delete;

  /// The number of a program's host, in any numbering.
  std::uint32_t host_of(Rank program) const { return programs_.hosts.at(program.value); }
  /// All programs.
  ProgramGroup& everyone() { return *everyone_; }
  /// A group of some programs, whose ranks in it follow the order of `ranks`, this one's among
  /// them. All of them call it, in the same order where two groups have two members in common. A
  /// wait takes at most `wait_limit`. The node outlives the group. Errors: PeerLost, TimedOut.
  std::unique_ptr<ProgramGroup> open_group(const std::vector<Rank>& ranks, Duration wait_limit);

  /// Leaves: the others see this node as lost, and what is under way here ends with an error.
  void close();

  /// Says what this program trains, and waits until all programs have said so. Errors: ConfigError,
  /// where they differ; the error that ended the job; Interrupted, after which this node has left.
  wire::Training define(const LoopDefinition& definition);
  /// The world of the worker that joins the training, and its link to the coordinator.
  World& world() { return world_; }
  MemberLink& link() { return link_; }

  /// A dataset that all programs share: its number among theirs, and its length.
  struct SharedDataset {
    std::uint32_t number = 0;
    std::uint64_t samples = 0;
  };
  /// Asks for a range of the dataset, or for the division of a step, and returns at once. One
  /// request of a dataset at a time. The coordinator knows the rank.
  void ask(const SharedDataset& dataset, const LeaseRequest& request);
  /// The answer to `ask`. Errors: ConfigError, where the datasets of the programs differ; the error
  /// that ended the job; Cancelled, when the user has ended it.
  Lease await_lease(const SharedDataset& dataset);

  /// After the loss of another program: the error by which the coordinator has ended the job, if it
  /// comes within a moment; else null.
  std::exception_ptr end_of_job();

  TimePoint now() const { return world_.now(); }

 private:
  void meet();
  void receive(const wire::FromCoordinator& message);
  template <class Take>
  auto await(const Take& take);
  std::uint32_t agreed_number(Group::Options members);

  RealWorld world_;

  Mutex mutex_;
  std::condition_variable changed_;
  std::optional<wire::Programs> introduction_ GUARDED_BY(mutex_);
  std::optional<wire::Training> training_ GUARDED_BY(mutex_);
  std::list<wire::Lease> leases_ GUARDED_BY(mutex_);  ///< that no thread has taken yet
  bool aborted_ GUARDED_BY(mutex_) = false;           ///< the coordinator has ended the job
  bool ended_ GUARDED_BY(mutex_) = false;             ///< the user has

  MemberLink link_;  ///< its receive loop uses the members above
  Group::Options programs_;
  ProgramGroup::Processes processes_;
  std::uint32_t next_group_;                ///< no group that this node knows has the number
  std::unique_ptr<ProgramGroup> everyone_;  ///< last: its operations use the members above
};

}  // namespace syncopate
