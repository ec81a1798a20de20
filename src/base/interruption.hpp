#pragma once

#include <condition_variable>
#include <functional>

#include "base/errors.hpp"
#include "base/mutex.hpp"
#include "base/time.hpp"

/// Lets a program that embeds the library interrupt a wait for other workers. The library has no
/// signal handler of its own, and an interpreter runs the handlers of a script only between its own
/// steps. So a waiting thread regularly asks a function of the program.
namespace syncopate::interruption {

/// The interval at which a wait asks; it first asks after one interval, so a shorter wait is not
/// interrupted.
constexpr Duration every = std::chrono::seconds(1);

/// From now on waits of the calling thread call `requested`, without holding their mutex, and end
/// once it returns true. Empty: they are not interrupted, as at first.
void ask(std::function<bool()> requested);

/// The message of the error that ends an interrupted wait.
inline constexpr const char* reason =
    "the program was interrupted while it waited for the other workers";

/// A wait was interrupted.
class Interrupted : public Cancelled {
 public:
  Interrupted() : Cancelled(reason) {}
};

/// True in a thread that has called `ask`, until it calls it with an empty function.
bool is_asked();

/// Asks the thread's function. False in a thread that has not called `ask`.
bool is_requested();

/// The same for a caller that holds a mutex, which it releases while it asks. Clang's analysis does
/// not follow a mutex through a reference.
inline bool is_requested(MutexLock& lock) NO_THREAD_SAFETY_ANALYSIS {
  lock.unlock();
  const bool requested = is_requested();
  lock.lock();
  return requested;
}

/// Errors: Interrupted if `is_requested()`.
void throw_if_requested();

/// Waits until `ready()`, which is called under the mutex, is true. Returns false if the wait is
/// interrupted. The caller holds the mutex afterwards.
template <class Ready>
bool wait(MutexLock& lock, std::condition_variable& changed, const Ready& ready) {
  while (!changed.wait_for(lock.native(), every, ready)) {
    if (is_requested(lock)) {
      return false;
    }
  }
  return true;
}

}  // namespace syncopate::interruption
