#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "config/toml_table.hpp"
#include "report/esync_logs.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Json> objects_in(const std::filesystem::path& path) {
  std::vector<Json> objects;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    if (Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false); object.is_object()) {
      objects.push_back(std::move(object));
    }
  }
  return objects;
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

/// The options by which runs are grouped, as far as config.toml has them.
Json options_of(const RunFolder& run) {
  constexpr std::array names{"scheme",  "network", "data",         "split",         "cluster",
                             "workers", "seed",    "virtual_time", "learning_rate", "batch_size"};
  Json options = Json::object();
  if (std::filesystem::exists(run.config())) {
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

/// The seconds of one round: the differences between two lines of a log.
class RoundTimes {
 public:
  RoundTimes(const Json& line, const Json& before) : line_(line), before_(before) {}

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
  double spent(const char* name) const { return number(line_, name) - number(before_, name); }

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
};

/// The host of a worker, as its spans have it.
std::string host_of(const RunFolder& run, Rank rank) {
  const std::vector<Json> spans = objects_in(run.spans_of("worker", rank));
  const std::string host = spans.empty() ? "" : spans.front().value("host", "");
  return host.empty() ? "host" : host;
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw DataError(fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
  }
}

std::size_t export_worker(const RunFolder& run, Rank rank, bool local,
                          const std::filesystem::path& out) {
  const std::vector<Json> lines = objects_in(run.worker_log(rank));
  const auto evaluations = rank == Rank{0}
                               ? evaluations_by_line(lines, objects_in(run.evaluations()))
                               : std::map<std::size_t, Json>{};
  const auto folder = out / host_of(run, rank) / fmt::format("worker{}", rank.value);
  make_folder(folder);
  const Json nothing = Json::object();
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const Json& line = lines[index];
    Json report{{"num_iters", index + 1},
                {"time", RoundTimes(line, index > 0 ? lines[index - 1] : nothing).to_json(local)},
                {"num_samples", line.value("own_samples", std::uint64_t{0})},
                {"total_time", number(line, "training_seconds")}};
    if (const auto tested = evaluations.find(index); tested != evaluations.end()) {
      report["accuracy"] = number(tested->second.back(), "accuracy");
      report["evaluations"] = tested->second;
    }
    if (index == 0) {
      report["run"] = options_of(run);
    }
    write_file(folder / fmt::format("iter-{}.txt", index + 1), json_text(report));
  }
  return lines.size();
}

/// True if a worker takes several steps in a round.
bool steps_locally(const RunFolder& run, std::uint32_t workers) {
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    const std::vector<Json> lines = objects_in(run.worker_log(Rank{rank}));
    if (std::ranges::any_of(lines,
                            [](const Json& line) { return number(line, "own_steps") > 1; })) {
      return true;
    }
  }
  return false;
}

}  // namespace

EsyncLogs export_esync_logs(const RunFolder& run, const std::filesystem::path& out) {
  EsyncLogs exported;
  std::uint32_t workers = 0;
  while (std::filesystem::exists(run.worker_log(Rank{workers}))) {
    ++workers;
  }
  if (workers == 0) {
    throw DataError(
        fmt::format("expected the folder of a run, found no {}", run.worker_log(Rank{0}).string()));
  }
  const bool local = steps_locally(run, workers);
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    exported.rounds += export_worker(run, Rank{rank}, local, out);
  }
  exported.workers = workers;
  return exported;
}

}  // namespace syncopate
