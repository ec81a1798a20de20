#pragma once

#include <exception>

#include "sim/node.hpp"

namespace syncopate::sim {

/// The end of an operation, which one task at a time may await.
class Completion {
 public:
  bool done() const { return done_; }

  /// The operation has ended, well unless there is an error. The first call counts.
  void complete(std::exception_ptr error = nullptr);

  /// Throws the error that the operation ended with, if any.
  void check() const;

  /// Blocks until the end (true) or the deadline (false). Errors: those of `Node::block`;
  /// InternalError, when another task awaits the same end.
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
