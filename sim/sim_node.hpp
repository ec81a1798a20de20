#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "sim/scheduler.hpp"

namespace syncopate::sim {

/// Ends the tasks of a killed node: thrown by the call in which they are blocked, or by the next
/// one. Only the simulation may catch it, hence it is no `std::exception`.
struct NodeDied {};

/// The tasks of one node. They block only through this class, so that all can be ended.
class Node {
 public:
  Node(NodeId id, std::string name, Scheduler& scheduler)
      : id_(id), name_(std::move(name)), scheduler_(scheduler) {}

  NodeId id() const { return id_; }
  /// "node 3 (worker 2)"
  std::string title() const;
  Scheduler& scheduler() const { return scheduler_; }
  TimePoint now() const { return scheduler_.now(); }

  /// A task on a strand of its own. `body` must not throw, and does nothing on a dead node.
  void start(const std::string& task, std::function<void()> body);

  /// Blocks the calling task until it is woken (true) or until the deadline (false).
  /// Errors: NodeDied, or the error given to `cancel`.
  bool block(const Waiting& waiting, TimePoint deadline);
  /// The same for destructors: never throws, and may return early.
  void block_quietly(const Waiting& waiting, TimePoint deadline) noexcept;
  /// Throws the errors of `block`.
  void check() const;

  /// Ends every `block` under way and to come with `why`. The first call counts.
  void cancel(std::exception_ptr why) noexcept;
  /// The same with NodeDied, whatever was called before.
  void die() noexcept;
  bool dead() const { return dead_; }

  /// Stops the first task, the node's own body, until `go_on`, `cancel` or `die`. The other tasks
  /// continue.
  void hang();
  void go_on();

 private:
  void wake_all();

  NodeId id_;
  std::string name_;
  Scheduler& scheduler_;
  std::exception_ptr ended_by_;
  bool dead_ = false;
  bool started_ = false;
  std::vector<Strand*> strands_;
  Strand* body_ = nullptr;  ///< the first task, while it lives
};

/// The end of an operation, which one task at a time may await.
class Completion {
 public:
  bool done() const { return done_; }

  /// Called when the operation has ended, with its error, if any. Only the first call counts.
  void complete(std::exception_ptr error = nullptr);

  /// Throws the error that the operation ended with, if any.
  void check() const;

  /// Blocks until the end (true) or the deadline (false). Errors: those of `Node::block`;
  /// InternalError if another task awaits the same end.
  bool await(Node& node, const Waiting& waiting, TimePoint deadline);
  /// Blocks until the end, whatever happens to the node in the meantime. For destructors.
  void await_quietly(Node& node, const Waiting& waiting) noexcept;

 private:
  bool done_ = false;
  std::exception_ptr error_;
  Scheduler* scheduler_ = nullptr;  // of the waiter
  Strand* waiter_ = nullptr;
};

}  // namespace syncopate::sim
