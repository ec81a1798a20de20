#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/mutex.hpp"
#include "base/time.hpp"
#include "telemetry/lenient_lines.hpp"

namespace syncopate {

/// The threads of a worker in a trace.
namespace trace_thread {
inline constexpr std::string_view compute = "compute";
inline constexpr std::string_view communication = "communication";
inline constexpr std::string_view wait = "wait";
inline constexpr std::string_view loader = "loader";
}  // namespace trace_thread

/// The activities of one process of a job, by its own clock: a line of JSON for each slice, flow,
/// counter and instant. `merge_trace` makes one trace from the logs of all processes
/// (`report/trace_merge.hpp`).
/// If a process is killed, its file has the lines until a second before.
///
/// Lines are documented in docs/reference/records.md. Names of threads and slices are ASCII without
/// quotes.
///
/// Thread: any.
class SpanLog {
 public:
  using Json = nlohmann::ordered_json;

  struct Slice {
    std::string_view thread;
    std::string_view name;
    TimePoint begun;
    TimePoint ended;
    std::uint64_t round = 0;
    std::uint64_t steps = 0;
    std::uint64_t samples = 0;
  };

  /// From a worker's arrival at the synchronization of a round, on the thread compute, to the end
  /// of that synchronization, on another thread.
  struct Flow {
    std::uint64_t round = 0;
    TimePoint arrived;
    TimePoint ended;
    std::string_view thread;
  };

  /// `header` names the process; the log adds the reading of `clock`. Makes the file's folder, and
  /// replaces the file. `report`: as for `LenientLines`.
  SpanLog(const Clock& clock, const std::filesystem::path& path, Json header,
          LenientLines::Report report);

  /// Skips a slice without duration.
  void slice(const Slice& slice);
  void flow(const Flow& flow);
  void counter(std::string_view name, TimePoint at, double value);
  /// `args`: an object.
  void instant(std::string_view thread, const std::string& name, TimePoint at, const Json& args);
  void line(const Json& object);
  void flush();

 private:
  void write(std::string_view text);

  const Clock& clock_;
  Mutex mutex_;
  LenientLines lines_ GUARDED_BY(mutex_);
  TimePoint flushed_ GUARDED_BY(mutex_);
};

}  // namespace syncopate
