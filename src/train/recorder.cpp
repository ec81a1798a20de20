#include "train/recorder.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "cluster/pace_check.hpp"

namespace syncopate {
namespace {

using Json = Recorder::Json;

constexpr Duration status_every = std::chrono::milliseconds(200);

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double busy_seconds(const wire::Heartbeat& worker) {
  return worker.data_seconds() + worker.compute_seconds();
}

/// Samples per second of a device by itself, as the seconds in which it computed tell.
double stand_alone_throughput(const wire::Heartbeat& worker) {
  return ratio(static_cast<double>(worker.session_samples()), busy_seconds(worker));
}

Json or_null(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const EvaluationResult& result) {
  return {{"round", result.round},       {"samples", result.samples},
          {"epoch", result.epoch},       {"training_seconds", result.training_seconds},
          {"accuracy", result.accuracy}, {"loss", result.loss}};
}

EvaluationResult evaluation_in(const Json& line) {
  return {.round = line.at("round"),
          .samples = line.at("samples"),
          .epoch = line.at("epoch"),
          .training_seconds = line.at("training_seconds"),
          .accuracy = line.at("accuracy"),
          .loss = line.at("loss")};
}

Scoreboard scoreboard_of(const Recorder::Options& options) {
  Scoreboard scoreboard(options.config.target_accuracy);
  if (options.resumed && std::filesystem::exists(options.folder.evaluations())) {
    std::istringstream lines(read_file(options.folder.evaluations()));
    for (std::string line; std::getline(lines, line);) {
      scoreboard.add(evaluation_in(Json::parse(line)));
    }
  }
  return scoreboard;
}

}  // namespace

Recorder::Recorder(const Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)), scoreboard_(scoreboard_of(options_)) {}

std::optional<std::string> Recorder::objection(const std::map<NodeId, wire::Join>& joins) {
  std::vector<PaceCost> costs;
  for (const auto& [node, join] : joins) {
    if (join.step_budget() > 0) {
      costs.push_back({.device = fmt::format("worker {} ({})", join.index(), join.device()),
                       .cpu_seconds = join.step_cost(),
                       .budget_seconds = join.step_budget()});
    }
  }
  return pace_objection(costs, options_.cores, options_.config.time_scale);
}

void Recorder::refused(const std::string& reason) {
  warn(reason);
}

void Recorder::awaiting(const std::string& absent) {
  options_.emit({{"event", "note"}, {"text", "still waiting for " + absent}});
}

void Recorder::warn(const std::string& text) {
  log::warn("{}", text);
  options_.emit({{"event", "note"}, {"text", text}});
}

void Recorder::view_installed(const View& view) {
  view_ = view;
  Json workers = Json::array();
  for (const Member& member : view.workers()) {
    workers.push_back({{"rank", member.rank.value},
                       {"device", member.device},
                       {"host", member.host},
                       {"pid", member.pid}});
  }
  options_.emit({{"event", "started"},
                 {"run_dir", options_.folder.root().string()},
                 {"scheme", options_.config.scheme},
                 {"network", options_.config.network},
                 {"data", options_.config.data},
                 {"epochs", options_.config.epochs},
                 {"target_accuracy", or_null(options_.config.target_accuracy)},
                 {"workers", std::move(workers)}});
}

void Recorder::heard(const Member& member, const wire::Heartbeat& heartbeat) {
  if (member.role != Role::worker) {
    return;
  }
  const bool first_round = leader().round() == 0 && heartbeat.round() > 0;
  workers_[member.rank] = heartbeat;
  if (first_round || clock_.now() >= next_status_) {
    next_status_ = clock_.now() + status_every;
    emit_status();
  }
}

void Recorder::emit_status() {
  const wire::Heartbeat& job = leader();
  Json workers = Json::array();
  for (const auto& [rank, heartbeat] : workers_) {
    workers.push_back(status_of_worker(rank, heartbeat));
  }
  options_.emit({{"event", "status"},
                 {"training_seconds", job.job_seconds()},
                 {"samples", job.job_samples()},
                 {"epoch", job.epoch()},
                 {"round", job.round()},
                 {"loss", job.loss()},
                 {"throughput", ratio(static_cast<double>(job.job_samples()), job.job_seconds())},
                 {"workers", std::move(workers)}});
}

Json Recorder::status_of_worker(Rank rank, const wire::Heartbeat& heartbeat) const {
  const double session = heartbeat.session_seconds();
  return {{"rank", rank.value},
          {"samples", heartbeat.session_samples()},
          {"steps", heartbeat.step()},
          {"round", heartbeat.round()},
          {"phase", heartbeat.phase()},
          {"compute", ratio(busy_seconds(heartbeat), session)},
          {"communicate", ratio(heartbeat.communicate_seconds(), session)},
          {"wait", ratio(heartbeat.wait_seconds(), session)},
          {"samples_per_second", ratio(static_cast<double>(heartbeat.session_samples()), session)}};
}

const wire::Heartbeat& Recorder::leader() const {
  const auto found = workers_.find(Rank{0});
  return found == workers_.end() ? wire::Heartbeat::default_instance() : found->second;
}

void Recorder::evaluated(const wire::Evaluation& evaluation) {
  const EvaluationResult result{.round = evaluation.round(),
                                .samples = evaluation.samples(),
                                .epoch = evaluation.epoch(),
                                .training_seconds = evaluation.training_seconds(),
                                .accuracy = evaluation.accuracy(),
                                .loss = evaluation.loss()};
  scoreboard_.add(result);
  if (!evaluations_) {
    evaluations_.emplace(options_.folder.evaluations(), JsonLines::Mode::append);
  }
  Json line = to_json(result);
  evaluations_->write(line);
  evaluations_->flush();
  Json event{{"event", "evaluation"}};
  event.update(line);
  options_.emit(event);
}

void Recorder::checkpoint_written(const wire::Checkpoint& checkpoint) {
  options_.emit(
      {{"event", "checkpoint"}, {"path", checkpoint.path()}, {"round", checkpoint.round()}});
}

void Recorder::left(const Member& member, const wire::Leave& leave) {
  if (member.role == Role::worker) {
    workers_[member.rank] = leave.last();
  }
}

void Recorder::dropped(const Member& member, const std::string& reason) {
  workers_[member.rank];  // so that the summary has it, if only with nothing done
  dropped_[member.rank] = reason;
  warn(reason + "; the job goes on without it");
}

std::optional<std::string> Recorder::reason_to_stop() {
  std::optional<std::string> reason;
  if (options_.interrupted()) {
    reason = "interrupted";
  } else if (scoreboard_.time_to_target_seconds()) {
    reason = "the target accuracy is reached";
  }
  if (reason) {
    stop_reason_ = reason;
  }
  return reason;
}

void Recorder::finish() {
  emit_status();
  Json result = summary();
  write_file(options_.folder.summary(), result.dump(2) + "\n");
  options_.emit(
      {{"event", "finished"}, {"reason", ended_because()}, {"summary", std::move(result)}});
}

std::string Recorder::ended_because() const {
  if (stop_reason_) {
    return *stop_reason_;
  }
  const TrainConfig& config = options_.config;
  if (config.max_steps && leader().step() >= *config.max_steps) {
    return "the limit of steps is reached";
  }
  if (config.max_time && leader().epoch() < config.epochs) {
    return "the limit of time is reached";
  }
  return "every epoch is done";
}

void Recorder::fail(const std::exception& error) {
  options_.emit({{"event", "failed"},
                 {"kind", wire::Abort::Kind_Name(to_abort(error).kind())},
                 {"error", error.what()}});
}

Json Recorder::summary() const {
  const wire::Heartbeat& job = leader();
  double stand_alone = 0;
  double session_samples = 0;
  std::uint64_t traffic = 0;
  Json workers = Json::array();
  for (const Member& member : view_.workers()) {
    const wire::Heartbeat& worker = workers_.at(member.rank);
    stand_alone += stand_alone_throughput(worker);
    session_samples += static_cast<double>(worker.session_samples());
    traffic += worker.bytes_sent();
    workers.push_back(summary_of_worker(member));
  }
  const double session_throughput = ratio(session_samples, job.session_seconds());
  Json evaluations = Json::array();
  for (const EvaluationResult& result : scoreboard_.results()) {
    evaluations.push_back(to_json(result));
  }
  return {{"scheme", options_.config.scheme},
          {"network", options_.config.network},
          {"data", options_.config.data},
          {"seed", options_.config.seed},
          {"run_dir", options_.folder.root().string()},
          {"ended_because", ended_because()},
          {"accuracy", or_null(scoreboard_.last_accuracy())},
          {"best_accuracy", or_null(scoreboard_.best_accuracy())},
          {"target_accuracy", or_null(options_.config.target_accuracy)},
          {"time_to_target_seconds", or_null(scoreboard_.time_to_target_seconds())},
          {"training_seconds", job.job_seconds()},
          {"samples", job.job_samples()},
          {"epochs", job.epoch()},
          {"rounds", job.round()},
          {"loss", job.loss()},
          {"throughput", ratio(static_cast<double>(job.job_samples()), job.job_seconds())},
          {"cluster_efficiency", ratio(session_throughput, stand_alone)},
          {"traffic_bytes", traffic},
          {"workers", std::move(workers)},
          {"evaluations", std::move(evaluations)}};
}

Json Recorder::summary_of_worker(const Member& member) const {
  const wire::Heartbeat& worker = workers_.at(member.rank);
  const double session = worker.session_seconds();
  const auto reason = dropped_.find(member.rank);
  return {{"rank", member.rank.value},
          {"device", member.device},
          {"samples", worker.session_samples()},
          {"steps", worker.step()},
          {"throughput", ratio(static_cast<double>(worker.session_samples()), session)},
          {"computing_time_ratio", ratio(busy_seconds(worker), session)},
          {"communication_ratio", ratio(worker.communicate_seconds(), session)},
          {"wait_ratio", ratio(worker.wait_seconds(), session)},
          {"traffic_bytes", worker.bytes_sent()},
          {"pace_overruns", worker.overruns()},
          {"dropped_because", reason == dropped_.end() ? Json(nullptr) : Json(reason->second)},
          {"staleness", {{"median", 0}, {"p99", 0}, {"max", 0}}}};
}

}  // namespace syncopate
