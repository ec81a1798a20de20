#include "report/trace_merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "report/trace_writer.hpp"
#include "telemetry/span_log.hpp"

namespace syncopate {
namespace {

using Json = TraceWriter::Json;
using Track = TraceWriter::Track;

/// Number of lines between two calls of a `TraceProgress`: they take parts of a second.
constexpr std::uint64_t lines_of_progress = 20'000;

/// Calls `with` for each line of a log that is an object, until it returns false.
void for_each_line(const std::filesystem::path& path,
                   const std::function<bool(const Json&)>& with) {
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) {
      try {
        if (!with(object)) {
          return;
        }
      } catch (const Json::exception&) {
        continue;  // a damaged line
      }
    }
  }
}

/// The offset of a process's clock from the coordinator's.
struct Offset {
  Duration offset{};
  std::optional<Duration> skew = Duration::zero();  ///< empty: not known
};

/// A log of spans.
struct Log {
  std::filesystem::path path;
  Json header;
  Offset clock{};

  std::string process() const { return header.value("process", ""); }
  std::uint64_t rank() const { return header.value("rank", std::uint64_t{0}); }
  Duration began() const { return Duration(header.value("clock", std::int64_t{0})); }
  /// The running kernel; empty in the simulator.
  std::string kernel() const {
    const std::string machine = header.value("machine", "");
    return machine.substr(0, machine.find('/'));
  }
  std::string name() const {
    const std::string who =
        process() == "coordinator" ? process() : fmt::format("{} {}", process(), rank());
    const std::string device = header.value("device", "");
    const std::string host = header.value("host", "");
    return who + (device.empty() ? "" : ": " + device) + (host.empty() ? "" : " on " + host);
  }
};

std::optional<Log> log_at(const std::filesystem::path& path) {
  std::optional<Log> log;
  for_each_line(path, [&](const Json& line) {
    if (line.contains("process")) {
      log = Log{.path = path, .header = line};
    }
    return !log;
  });
  return log;
}

/// Workers by rank, then servers, then the coordinator.
std::vector<Log> logs_in(const RunFolder& folder) {
  std::vector<Log> logs;
  std::error_code none;  // an empty iterator, and then no logs
  for (const auto& entry : std::filesystem::directory_iterator(folder.spans(), none)) {
    if (auto log = log_at(entry.path())) {
      logs.push_back(std::move(*log));
    }
  }
  if (logs.empty()) {
    throw DataError(fmt::format(
        "expected spans of a run in {}, found none; a job writes them unless --trace is off",
        folder.spans().string()));
  }
  const auto order = [](const Log& log) {
    const std::string process = log.process();
    return std::pair(process == "worker" ? 0 : process == "server" ? 1 : 2, log.rank());
  };
  std::sort(logs.begin(), logs.end(),
            [&](const Log& one, const Log& other) { return order(one) < order(other); });
  return logs;
}

using Offsets = std::map<std::pair<std::string, std::uint64_t>, Offset>;

Offsets offsets_in(const Log& coordinator) {
  Offsets offsets;
  for_each_line(coordinator.path, [&](const Json& line) {
    if (line.contains("clock_of")) {
      offsets[{line.at("clock_of"), line.at("rank")}] = {
          .offset = Duration(line.at("offset").get<std::int64_t>()),
          .skew = Duration(line.at("skew").get<std::int64_t>())};
    }
    return true;
  });
  return offsets;
}

/// Sets the clock of each log, and returns the beginning of the trace.
Duration align(std::vector<Log>& logs) {
  const auto coordinator = std::find_if(
      logs.begin(), logs.end(), [](const Log& log) { return log.process() == "coordinator"; });
  if (coordinator == logs.end()) {
    const auto first = std::min_element(
        logs.begin(), logs.end(), [](const Log& a, const Log& b) { return a.began() < b.began(); });
    for (Log& log : logs) {
      log.clock.skew = log.kernel() == first->kernel() ? log.clock.skew : std::nullopt;
    }
    return first->began();
  }
  const Offsets offsets = offsets_in(*coordinator);
  for (Log& log : logs) {
    if (log.kernel().empty() || log.kernel() == coordinator->kernel()) {
      continue;
    }
    const auto found = offsets.find({log.process(), log.rank()});
    log.clock = found != offsets.end() ? found->second : Offset{.skew = std::nullopt};
  }
  return coordinator->began();
}

Json seconds_or_null(const std::optional<Duration>& time) {
  return time ? Json(to_seconds(*time)) : Json(nullptr);
}

/// The metadata of the trace.
Json facts_of(const std::vector<Log>& logs) {
  Json clocks = Json::array();
  for (const Log& log : logs) {
    clocks.push_back({{"process", log.name()},
                      {"offset_seconds", to_seconds(log.clock.offset)},
                      {"residual_skew_seconds", seconds_or_null(log.clock.skew)}});
  }
  return {{"producer", "syncopate"},
          {"time", "since the coordinator began, by its clock"},
          {"clocks", std::move(clocks)}};
}

/// Writes the events of one process.
class ProcessEvents {
 public:
  ProcessEvents(TraceWriter& trace, const Log& log, std::uint32_t process, Duration begin)
      : trace_(trace), log_(log), process_(process), begin_(begin) {
    const auto& skew = log.clock.skew;
    trace.process(process, log.name(),
                  !skew                      ? "skew of its clock: unknown"
                  : *skew > Duration::zero() ? fmt::format("skew of its clock: at most {:.3f} ms",
                                                           to_seconds(*skew) * 1000)
                                             : "");
    if (log.process() != "coordinator") {
      for (const auto name : {trace_thread::compute, trace_thread::communication,
                              trace_thread::wait, trace_thread::loader}) {
        track(std::string(name));
      }
    }
  }

  void write(const TraceProgress& progress) {
    std::uint64_t lines = 0;
    for_each_line(log_.path, [&](const Json& line) {
      if (++lines % lines_of_progress == 0) {
        progress();
      }
      write(line);
      return true;
    });
  }

 private:
  void write(const Json& line) {
    if (line.contains("slice")) {
      trace_.slice(track(line.at("thread")), line.at("slice"), moment(line.at("begin")),
                   Duration(line.at("duration").get<std::int64_t>()), args_of_slice(line));
    } else if (line.contains("flow")) {
      const std::uint64_t round = line.at("flow");
      trace_.flow((std::uint64_t{process_} << 40) + ++flows_,
                  {.track = track("compute"), .at = moment(line.at("begin"))},
                  {.track = track(line.at("thread")), .at = moment(line.at("end"))},
                  {{"round", round}});
    } else if (line.contains("counter")) {
      trace_.counter(process_, line.at("counter"), moment(line.at("at")), line.at("value"));
    } else if (line.contains("instant")) {
      trace_.instant(track(line.at("thread")), line.at("instant"), moment(line.at("at")),
                     line.at("args"));
    }
  }

  static Json args_of_slice(const Json& line) {
    Json args{{"round", line.at("round")}};
    for (const char* name : {"steps", "samples"}) {
      if (line.at(name) > 0) {
        args[name] = line.at(name);
      }
    }
    return args;
  }

  Track track(const std::string& thread) {
    const auto [found, is_new] =
        threads_.emplace(thread, static_cast<std::uint32_t>(threads_.size() + 1));
    const Track track{.process = process_, .thread = found->second};
    if (is_new) {
      trace_.thread(track, thread);
    }
    return track;
  }

  Duration moment(std::int64_t clock) const { return Duration(clock) - log_.clock.offset - begin_; }

  TraceWriter& trace_;
  const Log& log_;
  std::uint32_t process_;
  Duration begin_;
  std::map<std::string, std::uint32_t> threads_;
  std::uint64_t flows_ = 0;
};

}  // namespace

MergedTrace merge_trace(const RunFolder& folder, const TraceProgress& progress) {
  std::vector<Log> logs = logs_in(folder);
  const Duration begin = align(logs);
  TraceWriter trace(folder.trace());
  std::uint32_t process = 0;
  for (const Log& log : logs) {
    ProcessEvents(trace, log, ++process, begin).write(progress);
  }
  trace.finish(facts_of(logs));
  return {.processes = logs.size(), .events = trace.events()};
}

}  // namespace syncopate
