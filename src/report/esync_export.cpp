#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "config/toml_table.hpp"
#include "report/esync_fields.hpp"
#include "report/esync_logs.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

/// Calls `check` with each object and its place, "FILE:LINE". Skips other lines: a crash may leave
/// one.
template <class Check>
std::vector<Json> objects_in(const std::filesystem::path& path, Check check) {
  std::vector<Json> objects;
  std::ifstream lines(path);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false); object.is_object()) {
      check(object, fmt::format("{}:{}", path.string(), number));
      objects.push_back(std::move(object));
    }
  }
  return objects;
}

/// Fields of a worker's log that an export reads.
constexpr std::array logged_counts{"round", "own_steps", "own_samples"};
constexpr std::array logged_sums{"data_seconds",     "compute_seconds", "forward_seconds",
                                 "backward_seconds", "update_seconds",  "communicate_seconds",
                                 "wait_seconds",     "evaluate_seconds"};

void check_worker_line(const Json& line, const std::string& where) {
  for (const char* name : logged_counts) {
    esync::optional_count(line, name, where);
  }
  for (const char* name : logged_sums) {
    esync::optional_seconds(line, name, where);
  }
  esync::optional_seconds(line, "training_seconds", where);
}

double number(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : 0;
}

/// ESync's tools write four digits.
double rounded(double seconds) {
  return std::round(seconds * 1e4) / 1e4;
}

template <class Value>
Json to_json(const Value& value) {
  if constexpr (std::is_same_v<Value, std::monostate>) {
    return nullptr;
  } else {
    return value;
  }
}

/// The evaluations, by the first line whose round includes them.
std::map<std::size_t, Json> evaluations_by_line(const std::vector<Json>& lines,
                                                const std::vector<Json>& evaluations) {
  std::map<std::size_t, Json> by_line;
  for (const Json& evaluation : evaluations) {
    const auto line = std::ranges::find_if(lines, [&](const Json& candidate) {
      return number(candidate, "round") >= number(evaluation, "round");
    });
    if (line != lines.end()) {
      by_line[static_cast<std::size_t>(line - lines.begin())].push_back(evaluation);
    }
  }
  return by_line;
}

/// The options by which runs are grouped, of those that config.toml has.
Json options_of(const RunFolder& run) {
  constexpr std::array names{"scheme",  "network", "data",         "split",         "cluster",
                             "workers", "seed",    "virtual_time", "learning_rate", "batch_size"};
  Json options = Json::object();
  if (is_there(run.config())) {
    const auto keep = [&](std::string_view key, const OptionValue& value) {
      if (std::ranges::find(names, key) != names.end()) {
        std::visit([&](const auto& one) { options[std::string(key)] = to_json(one); }, value);
      }
      return true;
    };
    TomlTable::read(run.config(), "").for_each(keep, {});
  }
  return options;
}

/// True if a process of a resumed run began between two lines: its sums begin at 0.
bool began_between(const Json& before, const Json& line) {
  return std::ranges::any_of(
      logged_sums, [&](const char* name) { return number(line, name) < number(before, name); });
}

/// The seconds of one round: the differences between two lines of a log.
class EsyncTimes {
 public:
  EsyncTimes(const Json& line, const Json& before)
      : line_(line), before_(before), began_(began_between(before, line)) {}

  /// ESync's object `time`. `local`: the optimizer steps before workers synchronize.
  Json to_json(bool local) const {
    const auto steps = static_cast<std::size_t>(std::max(1.0, number(line_, "own_steps")));
    Json times = Json::object();
    for (std::size_t step = 0; step < steps; ++step) {
      times[std::to_string(step)] = one_step(local, static_cast<double>(steps));
    }
    const double exchanged = spent("communicate_seconds") + spent("wait_seconds");
    Json& last = times[std::to_string(local ? steps : steps - 1)];
    if (local) {
      last = {{"check ready", 0.0}, {"global update", rounded(exchanged)}};
    } else {
      last["global aggregate"] = rounded(exchanged + spent("update_seconds"));
    }
    if (const double held = spent("evaluate_seconds"); held > 0) {
      last["evaluation"] = rounded(held);
    }
    return times;
  }

 private:
  double spent(const char* name) const {
    return number(line_, name) - (began_ ? 0 : number(before_, name));
  }

  Json one_step(bool local, double steps) const {
    const double passes = spent("forward_seconds") + spent("backward_seconds");
    Json step{{"get_batch", rounded(spent("data_seconds") / steps)},
              {"forward and backward", rounded(passes / steps)}};
    if (local) {
      step["local update"] = rounded(spent("update_seconds") / steps);
    }
    return step;
  }

  const Json& line_;
  const Json& before_;
  bool began_;
};

/// Makes the name of a folder from a name that another process has sent, so that it cannot name a
/// folder elsewhere.
std::string folder_name(std::string name) {
  std::ranges::replace_if(
      name,
      [](unsigned char character) { return character == '/' || std::iscntrl(character) != 0; },
      '_');
  return name.empty() ? "host" : name == "." || name == ".." ? "_" : name;
}

/// The host of a worker, from its spans.
std::string host_of(const RunFolder& run, Rank rank) {
  std::optional<std::string> host;
  objects_in(run.spans_of("worker", rank), [&](const Json& line, const std::string& where) {
    host = host ? host : esync::optional_text(line, "host", where).value_or("");
  });
  return folder_name(host.value_or(""));
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw DataError(fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
  }
}

/// The contents of a run's logs about one worker.
struct LoggedWorker {
  std::filesystem::path folder;
  std::vector<Json> lines;
  std::map<std::size_t, Json> evaluations{};  ///< by line; only of the first worker
};

LoggedWorker logged_worker(const RunFolder& run, Rank rank, const std::filesystem::path& out) {
  return {.folder = out / host_of(run, rank) / fmt::format("worker{}", rank.value),
          .lines = objects_in(run.worker_log(rank), check_worker_line)};
}

/// The evaluations of a run, by the lines of a worker's log.
std::map<std::size_t, Json> logged_evaluations(const RunFolder& run,
                                               const std::vector<Json>& lines) {
  const auto check = [](const Json& line, const std::string& where) {
    esync::optional_count(line, "round", where);
  };
  return evaluations_by_line(lines, objects_in(run.evaluations(), check));
}

/// `options`: those of the run.
void write_logs(const LoggedWorker& worker, bool local, const Json& options) {
  make_folder(worker.folder);
  const Json nothing = Json::object();
  for (std::size_t index = 0; index < worker.lines.size(); ++index) {
    const Json& line = worker.lines[index];
    const Json& before = index > 0 ? worker.lines[index - 1] : nothing;
    Json report{{"num_iters", index + 1},
                {"time", EsyncTimes(line, before).to_json(local)},
                {"num_samples", line.value("own_samples", std::uint64_t{0})},
                {"total_time", number(line, "training_seconds")}};
    if (const auto tested = worker.evaluations.find(index); tested != worker.evaluations.end()) {
      report["accuracy"] = number(tested->second.back(), "accuracy");
      report["evaluations"] = tested->second;
    }
    if (index == 0) {
      report["run"] = options;
    }
    write_file(worker.folder / fmt::format("iter-{}.txt", index + 1), json_text(report));
  }
}

/// True if a worker takes several steps in a round.
bool steps_locally(const std::vector<LoggedWorker>& workers) {
  return std::ranges::any_of(workers, [](const LoggedWorker& worker) {
    return std::ranges::any_of(worker.lines,
                               [](const Json& line) { return number(line, "own_steps") > 1; });
  });
}

/// Refuses a folder with logs: rounds of another run would be read as rounds of this one. Errors:
/// DataError.
void check_holds_no_logs(const std::filesystem::path& out) {
  constexpr int below_host_and_worker = 2;
  std::error_code none;  // an empty iterator
  std::filesystem::recursive_directory_iterator entry(out, none);
  for (; entry != std::filesystem::recursive_directory_iterator(); entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("iter-") && name.ends_with(".txt")) {
      throw DataError(fmt::format("{} already holds logs: {}; choose another --out", out.string(),
                                  entry->path().string()));
    }
    if (entry.depth() >= below_host_and_worker) {
      entry.disable_recursion_pending();
    }
  }
}

}  // namespace

EsyncLogs export_esync_logs(const RunFolder& run, const std::filesystem::path& out) {
  check_holds_no_logs(out);
  std::vector<LoggedWorker> workers;
  for (const Rank rank : run.logged_workers()) {
    workers.push_back(logged_worker(run, rank, out));
  }
  if (workers.empty()) {
    throw DataError(
        fmt::format("expected the folder of a run, found no {}", run.worker_log(Rank{0}).string()));
  }
  workers.front().evaluations = logged_evaluations(run, workers.front().lines);
  const bool local = steps_locally(workers);
  const Json options = options_of(run);
  EsyncLogs exported{.workers = workers.size()};
  for (const LoggedWorker& worker : workers) {
    write_logs(worker, local, options);
    exported.rounds += worker.lines.size();
  }
  return exported;
}

}  // namespace syncopate
