#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "config/toml_table.hpp"
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
  Json evaluations = Json::array();  ///< whole lines, which an export has
  bool local = false;
};

struct EsyncWorker {
  std::filesystem::path folder;
  std::vector<EsyncRound> rounds{};
  Json options = Json::object();  ///< of the run, which an export has
};

double seconds(const Json& iteration, const char* name) {
  return iteration.value(name, 0.0);
}

void add_iteration(EsyncRound& round, const Json& iteration) {
  round.steps += iteration.contains("forward and backward") ? 1 : 0;
  round.data += seconds(iteration, "get_batch");
  round.passes += seconds(iteration, "forward and backward");
  round.update += seconds(iteration, "local update");
  round.exchange += seconds(iteration, "global update") + seconds(iteration, "global aggregate");
  round.check += seconds(iteration, "check ready") + seconds(iteration, "reset state server");
  round.evaluation += seconds(iteration, "evaluation");
  round.local = round.local || iteration.contains("global update");
}

/// `options`: takes those of the run; may be null. Errors: DataError, for a file that is no log of
/// a round.
EsyncRound round_in(const std::filesystem::path& path, Json* options) {
  try {
    const Json report = Json::parse(read_file(path));
    EsyncRound round{.samples = report.at("num_samples"), .ended = report.at("total_time")};
    for (const auto& [number, iteration] : report.at("time").items()) {
      add_iteration(round, iteration);
    }
    if (report.contains("accuracy")) {
      round.accuracy = report.at("accuracy").get<double>();
    }
    round.evaluations = report.value("evaluations", Json::array());
    for (const Json& one : round.evaluations) {
      evaluation_from(one);  // throws for a damaged one
    }
    if (options != nullptr) {
      *options = report.value("run", Json::object());
    }
    return round;
  } catch (const Json::exception& error) {
    throw DataError(fmt::format(
        "{}: expected a round as ESync logs it, with num_samples, time and total_time: {}",
        path.string(), error.what()));
  }
}

EsyncWorker worker_in(const std::filesystem::path& folder) {
  EsyncWorker worker{.folder = folder};
  for (std::uint64_t number = 1;; ++number) {
    const auto path = folder / fmt::format("iter-{}.txt", number);
    if (!std::filesystem::exists(path)) {
      return worker;
    }
    worker.rounds.push_back(round_in(path, number == 1 ? &worker.options : nullptr));
  }
}

/// Errors: DataError, where there are none.
std::vector<EsyncWorker> workers_below(const std::filesystem::path& logs) {
  std::set<std::filesystem::path> folders;
  std::error_code none;  // an empty iterator
  for (const auto& entry : std::filesystem::recursive_directory_iterator(logs, none)) {
    if (entry.path().filename() == "iter-1.txt") {
      folders.insert(entry.path().parent_path());
    }
  }
  if (folders.empty()) {
    throw DataError(fmt::format("expected iter-1.txt in folders below {}, one a worker, found none",
                                logs.string()));
  }
  std::vector<EsyncWorker> workers;
  for (const auto& folder : folders) {
    workers.push_back(worker_in(folder));
  }
  return workers;
}

/// Samples of all workers in their round `index`; in asynchronous logs, which have other numbers of
/// rounds, nothing better is known.
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

/// What is known of the run: the user's word first, then that of the logs.
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
  if (std::filesystem::exists(run.summary())) {
    throw DataError(
        fmt::format("{} already holds a run; choose another --out", run.root().string()));
  }
  const std::vector<EsyncWorker> workers = workers_below(logs);
  return Import(workers, run, origin).write();
}

}  // namespace syncopate
