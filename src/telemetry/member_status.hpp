#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.hpp"
#include "base/time.hpp"
#include "telemetry/histogram.hpp"
#include "telemetry/metrics.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// The phase in which a worker exchanges its step with others.
inline constexpr std::string_view phase_synchronization = "synchronization";
/// The phase in which a member sends a snapshot or writes a checkpoint.
inline constexpr std::string_view phase_snapshot = "snapshot";

/// The status that a worker or a server reports.
struct MemberStatus {
  std::string phase{};      ///< of a step, in words
  bool computing = false;   ///< in a step
  Duration expected{};      ///< upper bound of the current step; zero: unknown
  std::string aggregate{};  ///< the algorithm of the reduction over all workers
  MetricValues metrics{};
  std::uint64_t empty_steps = 0;  ///< steps without samples, which `metrics` does not count
  Histogram staleness{};
  Histogram queue_length{};  ///< of a server: requests that waited when it took one
};

wire::Heartbeat to_wire(const MemberStatus& status);
/// The metrics of a heartbeat. `table` is that of the sender.
MetricValues metrics_in(const wire::Heartbeat& heartbeat, MetricTable table = all_metrics());

/// The text for the wait of a program's loop outside its steps: the operation of the heartbeat, or,
/// if that is empty, a message.
std::string program_wait_in(const std::string& operation);

wire::Counts to_wire(const Histogram& histogram);
/// Errors: ProtocolError if no histogram can have these counts.
Histogram from_wire(const wire::Counts& counts);

/// A member's status while it changes: the member's own task writes, the heartbeat task reads.
///
/// Thread: any.
class StatusBoard {
 public:
  explicit StatusBoard(MetricTable table = all_metrics()) { status_.metrics = MetricValues(table); }

  /// Calls `change(MemberStatus&)` while no other task reads or writes.
  template <class Change>
  void update(Change&& change) {
    const MutexLock lock(mutex_);
    std::forward<Change>(change)(status_);
  }
  wire::Heartbeat message() const;
  MetricValues metrics() const;

 private:
  mutable Mutex mutex_;
  MemberStatus status_ GUARDED_BY(mutex_);
};

}  // namespace syncopate
