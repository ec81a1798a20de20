#pragma once

#include <cstdint>
#include <functional>

#include "report/run_folder.hpp"

namespace syncopate {

struct MergedTrace {
  std::size_t processes = 0;
  std::uint64_t events = 0;
};

/// Called now and then while a trace is written.
using TraceProgress = std::function<void()>;

/// Makes `trace.json.gz` of a run folder from the spans that its processes have written
/// (`telemetry/span_log.hpp`). The job may still run, or have crashed: damaged lines are skipped.
///
/// The time of the trace is that of the coordinator's clock since it began. A process on the
/// coordinator's running kernel has the same clock; the clocks of others are mapped by the offsets
/// that the coordinator has estimated, whose residual skew is in the metadata (`ClockOffset`).
///
/// Errors: DataError if the folder has no spans, or if the trace cannot be written.
MergedTrace merge_trace(
    const RunFolder& folder, const TraceProgress& progress = [] {});

}  // namespace syncopate
