#pragma once

#include <optional>

#include "report/run_folder.hpp"
#include "runtime/job_view.hpp"
#include "spec/config.hpp"
#include "telemetry/span_log.hpp"
#include "telemetry/thinning.hpp"

namespace syncopate {

/// A parameter server's part of a trace: the requests that it handles and the snapshots that it
/// hands over as slices, and its updates as a counter.
///
/// Thread: one.
class ServerTrace {
 public:
  /// `clock` must outlive this.
  ServerTrace(const Clock& clock, TraceDetail detail, const RunFolder& folder,
              const Member& server);

  /// A request has been handled in `busy`, until now.
  void handled(Duration busy);
  /// A model was handed over or saved, from `begun` until now.
  void saved(TimePoint begun);
  void progressed(double updates);
  void flush();

 private:
  const Clock& clock_;
  std::optional<SpanLog> log_;  ///< empty: no trace is written
  Thinning requests_;
  Thinning counters_;
};

}  // namespace syncopate
