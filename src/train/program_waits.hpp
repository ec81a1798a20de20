#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.hpp"

namespace syncopate {

/// What a program waits for outside the steps of its training: collectives and messages of its own.
///
/// Thread: any.
class ProgramWaits {
 public:
  ProgramWaits() = default;
  ProgramWaits(const ProgramWaits&) = delete;
  ProgramWaits& operator=(const ProgramWaits&) = delete;

  /// The calling thread is the one whose loop trains.
  void loop_is_here();
  /// It takes no further step, and waits for the loops of the other workers.
  void loop_ends();

  /// A collective of the program, while it goes on.
  class Operation {
   public:
    /// `text` says which one, in words; any thread calls it while this lives.
    Operation(ProgramWaits& waits, std::function<std::string()> text);
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    ProgramWaits& waits_;
    std::list<std::function<std::string()>>::iterator place_;
  };

  /// A wait of the calling thread for such an operation, or for a message, while it lasts.
  class Wait {
   public:
    /// Null: it does not count.
    explicit Wait(ProgramWaits* waits);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    ProgramWaits* waits_;  ///< null: this wait is none of the loop
  };

  /// The collective that has begun first of those that go on, in words; empty: none does.
  std::optional<std::string> operation() const;
  /// True while the loop waits in one, or for a message, so that it computes nothing.
  bool loop_waits() const;
  bool loop_has_ended() const;

 private:
  mutable Mutex mutex_;
  std::thread::id loop_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  std::list<std::function<std::string()>> operations_ GUARDED_BY(mutex_);
  int waits_of_loop_ GUARDED_BY(mutex_) = 0;
};

}  // namespace syncopate
