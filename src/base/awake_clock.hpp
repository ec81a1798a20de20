#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.hpp"

namespace syncopate {

/// A steady clock that stands still while its process is suspended, so that no deadline passes and
/// no silence grows in the meantime.
///
/// No system call reports a suspension (SIGSTOP, the cgroup freezer, a stopped virtual machine). So
/// a task of the process beats at short intervals. So does a reader that comes in time, in case
/// only this task is stopped. When no beat comes for longer than `tolerance`, the process did not
/// run: the clock stops at that moment, and continues at the next beat of the task. Without beats
/// it follows its source.
///
/// Invariant: it never runs faster than its source, and never backwards.
/// Thread:    any may read; one beats at a time.
class AwakeClock {
 public:
  /// A steady clock of the system.
  using Source = Duration (*)();

  AwakeClock(Source source, Duration tolerance) : source_(source), tolerance_(tolerance) {}

  Duration now();
  void beat();
  /// Called when no more beats will come.
  void end_beats();

 private:
  static constexpr Duration::rep never = Duration::max().count();

  void beat_of_reader(Duration::rep source, Duration::rep stands_still);
  void account_for_absence(Duration::rep source);

  const Source source_;
  const Duration tolerance_;
  // Readers try again when the version has changed: they need both values of one moment.
  std::atomic<std::uint64_t> version_ = 0;           ///< odd while the values change
  std::atomic<Duration::rep> stands_still_ = never;  ///< from this moment of the source on
  std::atomic<Duration::rep> absences_ = 0;          ///< sum
};

}  // namespace syncopate
