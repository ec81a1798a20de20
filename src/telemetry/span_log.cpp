#include "telemetry/span_log.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace syncopate {
namespace {

constexpr Duration flush_every = std::chrono::seconds(1);

std::filesystem::path with_folder(const std::filesystem::path& path) {
  std::error_code unheeded;  // opening the file then reports the error
  std::filesystem::create_directories(path.parent_path(), unheeded);
  return path;
}

std::int64_t nanoseconds(TimePoint moment) {
  return moment.time_since_epoch().count();
}

}  // namespace

SpanLog::SpanLog(const Clock& clock, const std::filesystem::path& path, Json header,
                 LenientLines::Report report)
    : clock_(clock),
      lines_(with_folder(path), JsonLines::Mode::create, std::move(report)),
      flushed_(clock.now()) {
  header["clock"] = nanoseconds(clock.now());
  line(header);
  flush();
}

void SpanLog::slice(const Slice& slice) {
  if (slice.ended <= slice.begun) {
    return;
  }
  write(fmt::format(R"({{"slice":"{}","thread":"{}","begin":{},"duration":{},)"
                    R"("round":{},"steps":{},"samples":{}}})",
                    slice.name, slice.thread, nanoseconds(slice.begun),
                    (slice.ended - slice.begun).count(), slice.round, slice.steps, slice.samples));
}

void SpanLog::flow(const Flow& flow) {
  write(fmt::format(R"({{"flow":{},"begin":{},"end":{},"thread":"{}"}})", flow.round,
                    nanoseconds(flow.arrived), nanoseconds(flow.ended), flow.thread));
}

void SpanLog::counter(std::string_view name, TimePoint at, double value) {
  if (std::isfinite(value)) {
    write(fmt::format(R"({{"counter":"{}","at":{},"value":{}}})", name, nanoseconds(at), value));
  }
}

void SpanLog::instant(std::string_view thread, const std::string& name, TimePoint at,
                      const Json& args) {
  line({{"instant", name}, {"thread", thread}, {"at", nanoseconds(at)}, {"args", args}});
}

void SpanLog::line(const Json& object) {
  write(json_text(object));
}

void SpanLog::flush() {
  const MutexLock lock(mutex_);
  lines_.flush();
}

void SpanLog::write(std::string_view text) {
  const TimePoint now = clock_.now();
  const MutexLock lock(mutex_);
  lines_.write_text(text);
  if (now - flushed_ >= flush_every) {
    flushed_ = now;
    lines_.flush();
  }
}

}  // namespace syncopate
