#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/printable.hpp"
#include "config/toml_table.hpp"
#include "report/esync_fields.hpp"
#include "report/esync_logs.hpp"
#include "report/scoreboard.hpp"
#include "telemetry/json_lines.hpp"
#include "telemetry/metrics.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

/// A synchronization round of one worker, as ESync logs it. Seconds of the round.
struct EsyncRound {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double ended = 0;  ///< since the beginning
  double data = 0;
  double passes = 0;
  double update = 0;
  double exchange = 0;
  double check = 0;  ///< asking the state server, and resetting it
  double evaluation = 0;
  std::optional<double> accuracy{};
  Json evaluations = Json::array();  ///< whole lines, which only an export has
  bool local = false;
};

struct EsyncWorker {
  std::filesystem::path folder;
  std::vector<EsyncRound> rounds{};
  Json options = Json::object();  ///< of the run, which only an export has
};

/// `where`: the file of the round. Errors: DataError.
void add_iteration(EsyncRound& round, const Json& iteration, const std::string& where) {
  if (!iteration.is_object()) {
    esync::refuse(where, "an object for each iteration", "time", &iteration);
  }
  const auto seconds = [&](const char* name) {
    return esync::optional_seconds(iteration, name, where).value_or(0);
  };
  round.steps += iteration.contains("forward and backward") ? 1 : 0;
  round.data += seconds("get_batch");
  round.passes += seconds("forward and backward");
  round.update += seconds("local update");
  round.exchange += seconds("global update") + seconds("global aggregate");
  round.check += seconds("check ready") + seconds("reset state server");
  round.evaluation += seconds("evaluation");
  round.local = round.local || iteration.contains("global update");
}

/// The whole lines of evaluations that an export has.
Json evaluations_in(const Json& report, const std::string& where) {
  const Json evaluations = report.value("evaluations", Json::array());
  if (!evaluations.is_array()) {
    esync::refuse(where, "a list", "evaluations", &evaluations);
  }
  for (const Json& one : evaluations) {
    try {
      evaluation_from(one);
    } catch (const Json::exception&) {
      esync::refuse(where, "the fields of an evaluation", "evaluations", &one);
    }
    esync::optional_count(one, "round", where);
    esync::optional_count(one, "samples", where);
  }
  return evaluations;
}

bool is_bare_key(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char character) {
    return std::isalnum(character) != 0 || character == '_' || character == '-';
  });
}

/// Errors: DataError if the value is of another kind than the option's.
void check_option(const std::string& name, const Json& value, const std::string& where) {
  constexpr std::array texts{"scheme", "network", "data", "split", "cluster"};
  constexpr std::array counts{"workers", "seed", "batch_size"};
  if (!is_bare_key(name) || value.is_structured()) {
    esync::refuse(where, "options of a run, each with one value", "run", &value);
  }
  const Json option{{name, value}};
  if (std::ranges::find(texts, name) != texts.end()) {
    esync::optional_text(option, name.c_str(), where);
  } else if (std::ranges::find(counts, name) != counts.end()) {
    esync::optional_count(option, name.c_str(), where);
  } else if (name == "learning_rate") {
    esync::optional_number(option, name.c_str(), where);
  } else if (name == "virtual_time" && !value.is_boolean()) {
    esync::refuse(where, "true or false", name, &value);
  }
}

/// The options of a run in an export, without those that have no value.
Json options_in(const Json& report, const std::string& where) {
  const Json run = report.value("run", Json::object());
  if (!run.is_object()) {
    esync::refuse(where, "an object", "run", &run);
  }
  Json options = Json::object();
  for (const auto& [name, value] : run.items()) {
    if (!value.is_null()) {
      check_option(name, value, where);
      options[name] = value;
    }
  }
  return options;
}

Json report_at(const std::filesystem::path& path) {
  constexpr std::size_t shown_letters = 40;
  const std::string text = read_file(path);
  Json report = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object()) {
    throw DataError(fmt::format(
        "{}: expected a round as ESync logs it, one JSON object with num_samples, time and "
        "total_time; found '{}'",
        path.string(), excerpt(text, shown_letters)));
  }
  return report;
}

/// `options`: receives those of the run; may be null. Errors: DataError if the file is not the log
/// of a round.
EsyncRound round_in(const std::filesystem::path& path, Json* options) {
  const std::string where = path.string();
  const Json report = report_at(path);
  const auto samples = esync::optional_count(report, "num_samples", where);
  const auto ended = esync::optional_seconds(report, "total_time", where);
  const auto time = report.find("time");
  if (!samples || !ended || time == report.end()) {
    esync::refuse(where, "a value",
                  !samples ? "num_samples"
                  : !ended ? "total_time"
                           : "time",
                  nullptr);
  }
  if (!time->is_object()) {
    esync::refuse(where, "an object for each iteration", "time", &*time);
  }
  EsyncRound round{.samples = *samples, .ended = *ended};
  for (const auto& [number, iteration] : time->items()) {
    add_iteration(round, iteration, where);
  }
  round.accuracy = esync::optional_number(report, "accuracy", where);
  round.evaluations = evaluations_in(report, where);
  if (options != nullptr) {
    *options = options_in(report, where);
  }
  return round;
}

EsyncWorker worker_in(const std::filesystem::path& folder) {
  EsyncWorker worker{.folder = folder};
  for (std::uint64_t number = 1;; ++number) {
    const auto path = folder / fmt::format("iter-{}.txt", number);
    if (!is_there(path)) {
      return worker;
    }
    worker.rounds.push_back(round_in(path, number == 1 ? &worker.options : nullptr));
  }
}

/// Orders names with their numbers by value: "worker2" before "worker10".
struct NameOrder {
  explicit NameOrder(const std::string& name) : whole(name) {
    const std::size_t end = name.find_last_not_of("0123456789") + 1;  // 0 for only digits
    const std::size_t significant = std::min(name.find_first_not_of('0', end), name.size());
    text = name.substr(0, end);
    number = name.substr(significant);
    numbered = end < name.size();
  }

  auto operator<=>(const NameOrder& other) const {
    return std::tuple(text, numbered, number.size(), number, whole) <=>
           std::tuple(other.text, other.numbered, other.number.size(), other.number, other.whole);
  }
  bool operator==(const NameOrder&) const = default;

  std::string text;
  bool numbered = false;
  std::string number;  ///< digits without leading zeros, so that a longer one is greater
  std::string whole;
};

std::vector<NameOrder> order_of(const std::filesystem::path& path) {
  std::vector<NameOrder> order;
  for (const auto& name : path) {
    order.emplace_back(name.string());
  }
  return order;
}

/// Errors: DataError if there are none.
std::vector<EsyncWorker> workers_below(const std::filesystem::path& logs) {
  std::map<std::vector<NameOrder>, std::filesystem::path> folders;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(logs, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    if (entry->path().filename() == "iter-1.txt") {
      const auto folder = entry->path().parent_path();
      folders.emplace(order_of(folder), folder);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw DataError(
        fmt::format("cannot read the folders below {}: {}", logs.string(), error.message()));
  }
  if (folders.empty()) {
    throw DataError(fmt::format("expected iter-1.txt in folders below {}, one a worker, found none",
                                logs.string()));
  }
  std::vector<EsyncWorker> workers;
  for (const auto& [order, folder] : folders) {
    workers.push_back(worker_in(folder));
  }
  return workers;
}

/// Samples of all workers in their round `index`. In asynchronous logs, in which workers have
/// different numbers of rounds, this is an approximation.
std::uint64_t samples_of_round(const std::vector<EsyncWorker>& workers, std::size_t index) {
  std::uint64_t samples = 0;
  for (const EsyncWorker& worker : workers) {
    samples += index < worker.rounds.size() ? worker.rounds[index].samples : 0;
  }
  return samples;
}

/// Sums of a worker's rounds.
struct Sums {
  std::uint64_t steps = 0;
  std::uint64_t own_samples = 0;
  std::uint64_t samples = 0;
  double data = 0;
  double compute = 0;
  double update = 0;
  double exchange = 0;
  double check = 0;
  double evaluation = 0;

  void add(const EsyncRound& round, std::uint64_t of_all) {
    steps += round.steps;
    own_samples += round.samples;
    samples += of_all;
    data += round.data;
    compute += round.passes + round.update;
    update += round.update;
    exchange += round.exchange;
    check += round.check;
    evaluation += round.evaluation;
  }
};

Json line_of(const EsyncRound& round, std::size_t number, std::uint64_t of_all, const Sums& sums) {
  return {{"round", number},
          {"step", sums.steps},
          {"training_seconds", round.ended},
          {"samples", sums.samples},
          {"round_samples", of_all},
          {"own_steps", round.steps},
          {"own_samples", round.samples},
          {"loss", nullptr},
          {"data_seconds", sums.data},
          {"compute_seconds", sums.compute},
          {"update_seconds", sums.update},
          {"communicate_seconds", sums.exchange},
          {"wait_seconds", sums.check},
          {"evaluate_seconds", sums.evaluation}};
}

/// The size of the training set, and with it the epoch, is unknown.
Json evaluation_of(const EsyncRound& round, std::size_t number, std::uint64_t samples) {
  return {{"round", number},
          {"samples", samples},
          {"epoch", nullptr},
          {"training_seconds", round.ended},
          {"accuracy", *round.accuracy},
          {"loss", nullptr},
          {"evaluation_seconds", round.evaluation},
          {"batch_norm", nullptr}};
}

Json worker_object(const EsyncWorker& worker, std::size_t rank, const Sums& sums, double ended) {
  return {{"rank", rank},
          {"device", worker.folder.parent_path().filename().string() + "/" +
                         worker.folder.filename().string()},
          {"samples", sums.own_samples},
          {"steps", sums.steps},
          {"throughput", ratio(static_cast<double>(sums.own_samples), ended)},
          {"computing_time_ratio", ratio(sums.data + sums.compute, ended)},
          {"communication_ratio", ratio(sums.exchange, ended)},
          {"wait_ratio", ratio(sums.check, ended)},
          {"wait_seconds", sums.check},
          {"update_seconds", sums.update}};
}

/// The known options of the run: the user's values override those of the logs.
Json options_of(const std::vector<EsyncWorker>& workers, const EsyncOrigin& origin) {
  Json options = workers.front().options;
  const auto take = [&](const char* name, const std::optional<std::string>& value) {
    if (value) {
      options[name] = *value;
    }
  };
  take("scheme", origin.scheme);
  take("network", origin.network);
  take("data", origin.data);
  take("cluster", origin.cluster);
  if (options.contains("scheme")) {
    return options;
  }
  const EsyncWorker& first = workers.front();
  const bool local =
      std::ranges::any_of(workers, [](const EsyncWorker& one) { return one.rounds.front().local; });
  const bool together = std::ranges::all_of(
      workers, [&](const EsyncWorker& one) { return one.rounds.size() == first.rounds.size(); });
  if (local || together) {
    options["scheme"] = local ? "esync" : "ssgd";
  }
  return options;
}

/// The lines of config.toml: the options that have a value.
std::string toml_of(const Json& options) {
  std::string text;
  for (const auto& [name, value] : options.items()) {
    OptionValue option;
    if (value.is_string()) {
      option = value.get<std::string>();
    } else if (value.is_boolean()) {
      option = value.get<bool>();
    } else if (value.is_number_integer()) {
      option = value.get<std::int64_t>();
    } else if (value.is_number()) {
      option = value.get<double>();
    } else {
      continue;
    }
    text += fmt::format("{} = {}\n", name, to_toml(option));
  }
  return text;
}

/// Writes a run folder.
class Import {
 public:
  Import(const std::vector<EsyncWorker>& workers, const RunFolder& run, const EsyncOrigin& origin)
      : workers_(workers), run_(run), options_(options_of(workers, origin)) {}

  EsyncLogs write() {
    run_.create();
    JsonLines evaluations(run_.evaluations(), JsonLines::Mode::create);
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      write_worker(rank, evaluations);
    }
    write_file(run_.config(), toml_of(options_));
    write_file(run_.summary(), json_text(summary(), 2) + "\n");
    return {.workers = workers_.size(), .rounds = files_};
  }

 private:
  void write_worker(std::size_t rank, JsonLines& evaluations) {
    const EsyncWorker& worker = workers_[rank];
    JsonLines lines(run_.worker_log(Rank{static_cast<std::uint32_t>(rank)}),
                    JsonLines::Mode::create);
    Sums sums;
    for (std::size_t index = 0; index < worker.rounds.size(); ++index) {
      const EsyncRound& round = worker.rounds[index];
      const std::uint64_t of_all = samples_of_round(workers_, index);
      sums.add(round, of_all);
      lines.write(line_of(round, index + 1, of_all, sums));
      if (!round.evaluations.empty()) {
        add_evaluations(round.evaluations, evaluations);
      } else if (round.accuracy) {
        add_evaluations(Json::array({evaluation_of(round, index + 1, sums.samples)}), evaluations);
      }
    }
    ended_ = std::max(ended_, worker.rounds.back().ended);
    rounds_ = std::max(rounds_, worker.rounds.size());
    files_ += worker.rounds.size();
    samples_ += sums.own_samples;
    objects_.push_back(worker_object(worker, rank, sums, worker.rounds.back().ended));
  }

  void add_evaluations(const Json& all, JsonLines& evaluations) {
    for (const Json& one : all) {
      evaluations_.push_back(one);
      evaluations.write(one);
    }
  }

  Json known(const char* name) const { return options_.value(name, Json(nullptr)); }

  Json summary() const {
    double best = 0;
    for (const Json& evaluation : evaluations_) {
      best = std::fmax(best, evaluation_from(evaluation).accuracy);
    }
    const bool tested = !evaluations_.empty();
    return {{"scheme", known("scheme")},
            {"network", known("network")},
            {"data", known("data")},
            {"learning_rate", known("learning_rate")},
            {"imported_from", "esync-logs"},
            {"virtual_time", options_.value("virtual_time", false)},
            {"accuracy", tested ? evaluations_.back().at("accuracy") : Json(nullptr)},
            {"best_accuracy", tested ? Json(best) : Json(nullptr)},
            {"target_accuracy", nullptr},
            {"time_to_target_seconds", nullptr},
            {"training_seconds", ended_},
            {"samples", samples_},
            {"rounds", rounds_},
            {"throughput", ratio(static_cast<double>(samples_), ended_)},
            {"workers", objects_},
            {"servers", Json::array()},
            {"evaluations", evaluations_}};
  }

  const std::vector<EsyncWorker>& workers_;
  const RunFolder& run_;
  const Json options_;
  std::vector<Json> evaluations_;
  Json objects_ = Json::array();
  double ended_ = 0;
  std::size_t rounds_ = 0;
  std::size_t files_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace

EsyncLogs import_esync_logs(const std::filesystem::path& logs, const RunFolder& run,
                            const EsyncOrigin& origin) {
  if (is_there(run.summary()) || is_there(run.config())) {
    throw DataError(
        fmt::format("{} already holds a run; choose another --out", run.root().string()));
  }
  const std::vector<EsyncWorker> workers = workers_below(logs);
  return Import(workers, run, origin).write();
}

}  // namespace syncopate
