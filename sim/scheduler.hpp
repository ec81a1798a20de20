#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "sim/fiber.hpp"

namespace syncopate::sim {

/// Receives an event at a moment of virtual time.
class EventTarget {
 public:
  /// `argument` is the one that the event was scheduled with.
  virtual void fire(std::uint64_t argument) = 0;

 protected:
  ~EventTarget() = default;
};

/// Describes the event that a strand waits for, for the report of a deadlock.
class Waiting {
 public:
  /// Completes "waits for ...".
  virtual std::string describe() const = 0;

 protected:
  ~Waiting() = default;
};

/// A fiber under the scheduler. Others may refer to it until its body has ended.
class Strand {
 public:
  Strand(std::uint64_t number, std::string name, std::size_t stack_bytes,
         std::function<void()> body)
      : number_(number), name_(std::move(name)), fiber_(stack_bytes, std::move(body)) {}

  const std::string& name() const { return name_; }

 private:
  friend class Scheduler;

  std::uint64_t number_;
  std::string name_;
  Fiber fiber_;
  const Waiting* waiting_ = nullptr;    ///< null unless blocked
  bool woken_ = false;                  ///< by `wake`, not by the deadline
  bool frozen_ = false;                 ///< does not run although it may be ready
  bool held_ = false;                   ///< became ready while it was frozen
  TimePoint since_{};                   ///< when it blocked
  TimePoint deadline_ = no_deadline;    ///< of the current block
  TimePoint next_timer_ = no_deadline;  ///< the earliest event that looks at the deadline
};

/// Runs strands, one at a time, under a virtual clock, which moves only when all of them wait.
///
/// Order: strands that are ready run first in, first out; then the event with the least (time,
/// sequence) fires, where the sequence counts the calls of `schedule`. So a run is a function of
/// the calls of its strands, and of nothing else.
/// Thread: one.
class Scheduler final : private EventTarget {
 public:
  struct Options {
    std::size_t stack_bytes = std::size_t{1} << 20;
    /// More switches than this without the clock moving are taken for an endless loop.
    std::uint64_t switches_per_instant = 10'000'000;
  };

  explicit Scheduler(const Options& options) : options_(options) {}

  TimePoint now() const { return now_; }

  /// Fires `target` at `when`, or now if that has passed. It must live until then.
  void schedule(TimePoint when, EventTarget& target, std::uint64_t argument);

  /// A new strand, ready to run. `body` must not throw.
  Strand& start(std::string name, std::function<void()> body);

  /// The calling strand. Errors: InternalError if the caller is no strand.
  Strand& current() const;

  /// Blocks the calling strand until `wake` (true) or until the deadline (false); a deadline that
  /// has passed still lets every other ready strand run first.
  bool block(const Waiting& waiting, TimePoint deadline);

  /// Makes a strand ready if it is blocked, else does nothing.
  void wake(Strand& strand);

  /// From now on the strand does not run, like a thread that a debugger has stopped.
  void freeze(Strand& strand) { strand.frozen_ = true; }
  /// Ends `freeze`.
  void thaw(Strand& strand);

  /// The time of the next step: now, later, or never (`no_deadline`).
  TimePoint next_step() const;

  /// Runs one ready strand, or fires one event. Returns false if there is neither.
  /// Errors: InternalError if a strand loops endlessly; the errors that the event's target throws.
  bool step();

  /// Runs all ready strands, and those that they make ready, without moving the clock.
  void run_ready();

  /// One line for each blocked strand: its name, its wait and the start of the wait.
  std::string blocked() const;

 private:
  struct Event {
    TimePoint when;
    std::uint64_t sequence;
    EventTarget* target;
    std::uint64_t argument;

    /// For the standard heap, whose top is its greatest element.
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };

  void fire(std::uint64_t strand_number) override;  // a strand's deadline may have come
  void arm(Strand& strand);
  void make_ready(Strand& strand);
  void resume_next();
  void fire_next();

  Options options_;
  TimePoint now_{};
  std::uint64_t scheduled_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t switches_ = 0;  // since the clock moved
  Strand* current_ = nullptr;
  std::vector<Event> events_;  // a heap
  std::deque<Strand*> ready_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Strand>> strands_;  // by number
};

}  // namespace syncopate::sim
