#pragma once

#include <condition_variable>
#include <functional>

#include "base/errors.hpp"
#include "base/mutex.hpp"
#include "base/time.hpp"

/// How a program that embeds the library ends a wait for others: a library has no signal handler of
/// its own, and the interpreter of a script, say, runs those of the script between its own steps.
namespace syncopate::interruption {

/// A wait asks this often, for the first time after as long: one that ends sooner is not
/// interrupted.
constexpr Duration every = std::chrono::seconds(1);

/// From now on waits of the calling thread ask `requested`, which holds no mutex of theirs, and end
/// once it is true. Empty: they ask nobody, as at first.
void ask(std::function<bool()> requested);

/// Of the error that an interrupted wait ends by.
inline constexpr const char* reason =
    "the program was interrupted while it waited for the other workers";

/// A wait was ended in this way.
class Interrupted : public Cancelled {
 public:
  Interrupted() : Cancelled(reason) {}
};

/// Asks. False in a thread that has not called `ask`.
bool is_requested();

/// Errors: Interrupted, if it is.
void throw_if_requested();

/// Waits until `ready`, which is called under the mutex. False: the wait is interrupted. Returns
/// with the mutex. The analysis does not follow a mutex through a reference.
template <class Ready>
bool wait(MutexLock& lock, std::condition_variable& changed,
          const Ready& ready) NO_THREAD_SAFETY_ANALYSIS {
  while (!changed.wait_for(lock.native(), every, ready)) {
    lock.unlock();
    const bool requested = is_requested();
    lock.lock();
    if (requested) {
      return false;
    }
  }
  return true;
}

}  // namespace syncopate::interruption
