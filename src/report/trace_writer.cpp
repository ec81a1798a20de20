#include "report/trace_writer.hpp"

#include <nlohmann/json.hpp>

#include "telemetry/json_lines.hpp"

namespace syncopate {
namespace {

using Json = TraceWriter::Json;

/// An end of a flow belongs to the slice that contains it. The end of a slice is outside, so flows
/// end this much earlier.
constexpr Duration inside = std::chrono::nanoseconds(1);

double microseconds(Duration time) {
  return static_cast<double>(time.count()) / 1000;
}

Json event(const char* kind, TraceWriter::Track track, const std::string& name, Duration at) {
  return {{"ph", kind},
          {"pid", track.process},
          {"tid", track.thread},
          {"name", name},
          {"ts", microseconds(at)}};
}

}  // namespace

void TraceWriter::process(std::uint32_t process, const std::string& name,
                          const std::string& label) {
  write({{"ph", "M"}, {"pid", process}, {"name", "process_name"}, {"args", {{"name", name}}}});
  write({{"ph", "M"},
         {"pid", process},
         {"name", "process_sort_index"},
         {"args", {{"sort_index", process}}}});
  if (!label.empty()) {
    write(
        {{"ph", "M"}, {"pid", process}, {"name", "process_labels"}, {"args", {{"labels", label}}}});
  }
}

void TraceWriter::thread(Track track, const std::string& name) {
  write({{"ph", "M"},
         {"pid", track.process},
         {"tid", track.thread},
         {"name", "thread_name"},
         {"args", {{"name", name}}}});
  write({{"ph", "M"},
         {"pid", track.process},
         {"tid", track.thread},
         {"name", "thread_sort_index"},
         {"args", {{"sort_index", track.thread}}}});
}

void TraceWriter::slice(Track track, const std::string& name, Duration begin, Duration duration,
                        const Json& args) {
  Json slice = event("X", track, name, begin);
  slice["dur"] = microseconds(duration);
  slice["args"] = args;
  write(slice);
}

void TraceWriter::flow(std::uint64_t id, SliceEnd from, SliceEnd to, const Json& args) {
  Json start = event("s", from.track, "round", from.at - inside);
  start["cat"] = "round";
  start["id"] = id;
  start["args"] = args;
  write(start);
  Json finish = event("f", to.track, "round", to.at - inside);
  finish["cat"] = "round";
  finish["id"] = id;
  finish["bp"] = "e";
  write(finish);
}

void TraceWriter::instant(Track track, const std::string& name, Duration at, const Json& args) {
  Json instant = event("i", track, name, at);
  instant["s"] = "t";
  instant["args"] = args;
  write(instant);
}

void TraceWriter::counter(std::uint32_t process, const std::string& name, Duration at,
                          double value) {
  Json counter = event("C", {.process = process}, name, at);
  counter["args"] = {{"value", value}};
  write(counter);
}

void TraceWriter::finish(const Json& facts) {
  file_.write(events_ == 0 ? "{\"traceEvents\":[" : "");
  file_.write("\n],\"displayTimeUnit\":\"ms\",\"otherData\":" + json_text(facts) + "}\n");
  file_.commit();
}

void TraceWriter::write(const Json& event) {
  file_.write(events_ == 0 ? "{\"traceEvents\":[\n" : ",\n");
  file_.write(json_text(event));
  ++events_;
}

}  // namespace syncopate
