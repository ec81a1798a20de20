#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace syncopate::sim {

/// A function on a stack of its own, which can pause in the middle (Boost.Context).
///
/// A pause is allowed anywhere, in a catch block and while an exception unwinds the stack, too: the
/// C++ runtime's state of exceptions is kept per fiber. The stack ends in a guard page.
///
/// Thread: a fiber lives on the one thread that resumes it.
class Fiber {
 public:
  /// `body` must not throw. Its stack is allocated when it is first resumed.
  Fiber(std::size_t stack_bytes, std::function<void()> body);
  /// The fiber must have ended, or never have been resumed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the body until it pauses or ends. Called from outside the fiber.
  void resume();
  /// Returns to the caller that resumed this fiber. Called inside the fiber.
  void pause();
  bool ended() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace syncopate::sim
