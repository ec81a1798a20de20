#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// The longest time that a wait may take: a multiple of the usual time.
///
/// limit = max(floor, factor · median of the last `window` durations). The median ignores a single
/// outage; the floor covers the first waits, for which no usual time is known.
class AdaptiveLimit {
 public:
  struct Options {
    Duration floor = std::chrono::seconds(60);
    double factor = 20;
    std::size_t window = 64;
  };

  explicit AdaptiveLimit(Options options);

  void observed(Duration duration);
  Duration limit() const;
  /// Zero before the first observation.
  Duration median() const;

 private:
  Options options_;
  std::deque<Duration> recent_;
};

/// Decides how long a member waits for others. The coordinator decides, because only it knows the
/// state of every member.
///
/// Thread: any, several at a time.
class WaitArbiter {
 public:
  virtual ~WaitArbiter() = default;

  /// Reports a long wait. Returns the time after which the member reports it again. Blocks until
  /// the coordinator has answered.
  /// Errors: the error that ended the job.
  virtual Duration report_wait(const LongWait& wait) = 0;

  /// Called every `Waits::alive_every` during a wait: shows that the waiting task itself does not
  /// hang.
  virtual void waits() {}
};

/// The error of a wait that has reached its limit, in one line. `name`: returns the text for a
/// rank, such as "1".
RanksMissing error_of(
    const LongWait& wait, const std::function<std::string(Rank)>& name = [](Rank rank) {
      return std::to_string(rank.value);
    });

/// The waits of a member for other members: measures their usual time, and ends a wait that takes
/// much longer.
///
/// With an arbiter, a wait is reported when it has taken half of `Options::limit`, and again after
/// each extension; it ends early only with the job or with the group. So members wait for a device
/// that computes, whatever its speed. Without an arbiter, a wait ends at its limit:
/// `Options::limit` or 20 times the usual duration, whichever is longer.
///
/// Thread: one at a time.
class Waits {
 public:
  struct Options {
    Duration limit = std::chrono::seconds(60);
    WaitArbiter* arbiter = nullptr;
  };

  /// The reason for a wait.
  struct Awaited {
    const char* operation = "";
    std::function<std::vector<Rank>()>
        missing;                  ///< ranks of the job that are late; empty: no worker
    std::vector<Rank> servers{};  ///< whose answers are late
  };

  /// Blocks until the wait is over. Errors: TimedOut at the given time; it may then be called
  /// again.
  using Attempt = std::function<void(TimePoint)>;

  explicit Waits(Options options);

  /// Runs `attempt` until it succeeds. Calls `poll`, if there is one, every `poll_every`; it may
  /// throw.
  /// Errors: those of `attempt`, of `poll` and of the arbiter; RanksMissing, without an arbiter;
  ///         Interrupted (`interruption`).
  void run(const Clock& clock, const Attempt& attempt, const Awaited& awaited,
           const std::function<void()>& poll = {}) const;
  static constexpr Duration poll_every = std::chrono::milliseconds(100);
  static constexpr Duration alive_every = std::chrono::milliseconds(250);

  void observed(Duration duration) { recent_.observed(duration); }
  Duration median() const { return recent_.median(); }
  Duration limit() const;
  /// From now on the limit is at least this.
  void allow(Duration wait) { allowed_ = wait; }

 private:
  TimePoint end_of_attempt(TimePoint now, TimePoint due, bool polls) const;
  LongWait report_of(const Awaited& awaited, Duration waited) const;

  Options options_;
  AdaptiveLimit recent_;
  Duration allowed_{};
};

}  // namespace syncopate
