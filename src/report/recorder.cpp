#include "report/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/end_request.hpp"
#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "pacer/pace_estimate.hpp"
#include "report/trace_merge.hpp"
#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

using Json = Recorder::Json;

constexpr std::size_t letters_of_a_line = 60;
constexpr Duration status_every = std::chrono::milliseconds(200);

Json to_json(const PacerState::Worker& worker) {
  return {{"step_seconds", worker.step_seconds},
          {"step_samples", worker.step_samples},
          {"period", worker.period},
          {"round", worker.round},
          {"steps", worker.steps},
          {"meet_after", worker.sync_after ? Json(*worker.sync_after) : Json(nullptr)},
          {"reason", worker.reason ? Json(words_for(*worker.reason)) : Json(nullptr)},
          {"overdue", worker.overdue}};
}

/// Errors: DataError if a crash or another program has damaged the line.
EvaluationResult evaluation_in(const std::string& line, const std::filesystem::path& file) {
  try {
    return evaluation_from(Json::parse(line));
  } catch (const Json::exception&) {
    throw DataError(
        fmt::format("{}: expected an evaluation as JSON in each line, found '{}'; remove "
                    "this line",
                    file.string(), excerpt(line, letters_of_a_line)));
  }
}

Scoreboard scoreboard_of(const Recorder::Options& options) {
  Scoreboard scoreboard(options.config.target_accuracy);
  if (options.resumed && is_there(options.folder.evaluations())) {
    std::istringstream lines(read_file(options.folder.evaluations()));
    for (std::string line; std::getline(lines, line);) {
      scoreboard.add(evaluation_in(line, options.folder.evaluations()));
    }
  }
  return scoreboard;
}

}  // namespace

Recorder::Recorder(const Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)), scoreboard_(scoreboard_of(options_)) {
  open_trace();
}

void Recorder::open_trace() {
  if (options_.world == nullptr) {
    return;
  }
  if (options_.config.trace != TraceDetail::off) {
    trace_.emplace(*options_.world, options_.folder, warning());
  }
  curves_.emplace(ScalarLog::Options{
      .folder = options_.folder, .wall_time = options_.wall_time, .report = warning()});
}

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
  noted("still waiting for " + absent);
}

void Recorder::noted(const std::string& text) {
  options_.emit({{"event", "note"}, {"text", text}});
}

void Recorder::warn(const std::string& text) {
  log::warn("{}", text);
  noted(text);
}

LenientLines::Report Recorder::warning() {
  return [this](const std::string& reason) { warn(reason); };
}

void Recorder::view_installed(const View& view) {
  view_ = view;
  if (curves_) {
    curves_->began(view);
  }
  if (trace_) {
    trace_->began(view, options_.resumed);
  }
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
                 {"network", options_.config.network->name},
                 {"data", options_.config.data},
                 {"epochs", options_.config.epochs},
                 {"target_accuracy", or_null(options_.config.target_accuracy)},
                 {"virtual_time", options_.config.virtual_time},
                 {"workers", std::move(workers)}});
}

void Recorder::heartbeat_received(const Member& member, const wire::Heartbeat& heartbeat) {
  const bool before_first_round = rounds() == 0;
  note_down(member, heartbeat);
  const bool first_round = before_first_round && rounds() > 0;
  if (trace_) {
    trace_->heartbeat_came(member, heartbeat);
  }
  if (keeps_model(member)) {
    note_progress();
  }
  if (first_round || clock_.now() >= next_status_) {
    next_status_ = clock_.now() + status_every;
    emit_status();
  }
}

void Recorder::note_progress() {
  if (!trace_ && !curves_) {
    return;
  }
  const MetricValues job = metrics_in(keeper(), options_.metrics);
  std::map<Rank, MetricValues> workers;
  std::vector<MetricValues> members;
  for (const auto& [rank, heartbeat] : members_.workers) {
    members.push_back(metrics_in(heartbeat, options_.metrics));
    workers.emplace(rank, members.back());
  }
  for (const auto& [shard, heartbeat] : members_.servers) {
    members.push_back(metrics_in(heartbeat, options_.metrics));
  }
  if (curves_) {
    curves_->progressed(job, workers);
  }
  if (trace_) {
    trace_->progressed(job, job_value(Metric::traffic_bytes, members, job));
  }
}

void Recorder::emit_status() {
  if (pace_log_) {
    pace_log_->flush();
  }
  Json workers = Json::array();
  for (const auto& [rank, heartbeat] : members_.workers) {
    workers.push_back(status_of_worker(rank, heartbeat));
  }
  Json status{{"event", "status"}};
  const MetricValues job = metrics_in(keeper(), options_.metrics);
  write_metrics(status, &MetricNames::status, job);
  if (job[Metric::job_samples] == 0) {
    status["loss"] = nullptr;  // not known yet
  }
  if (pace_) {
    status["round_seconds"] = to_seconds(pace_->round_time);
  }
  status["workers"] = std::move(workers);
  options_.emit(status);
}

Json Recorder::status_of_worker(Rank rank, const wire::Heartbeat& heartbeat) const {
  Json status{{"rank", rank.value}, {"phase", heartbeat.phase()}};
  write_metrics(status, &MetricNames::worker_status, metrics_in(heartbeat, options_.metrics));
  if (pace_) {
    status["pace"] = to_json(pace_->workers[rank.value]);
  }
  return status;
}

void Recorder::note_down(const Member& member, const wire::Heartbeat& heartbeat) {
  if (member.role == Role::worker) {
    members_.workers[member.rank] = heartbeat;
  } else if (member.role == Role::server) {
    members_.servers[member.rank] = heartbeat;
  }
}

/// The last status of the member that keeps the model.
const wire::Heartbeat& Recorder::keeper() const {
  const bool served = server_keeps_model(options_.config);
  const auto& members = served ? members_.servers : members_.workers;
  const auto found = members.find(Rank{0});
  return found == members.end() ? wire::Heartbeat::default_instance() : found->second;
}

bool Recorder::keeps_model(const Member& member) const {
  const Role role = server_keeps_model(options_.config) ? Role::server : Role::worker;
  return member.role == role && member.rank == Rank{0};
}

double Recorder::rounds() const {
  return metrics_in(keeper())[Metric::rounds];
}

void Recorder::evaluated(const wire::Evaluation& evaluation) {
  const EvaluationResult result{.round = evaluation.round(),
                                .samples = evaluation.samples(),
                                .epoch = evaluation.epoch(),
                                .training_seconds = evaluation.training_seconds(),
                                .accuracy = evaluation.accuracy(),
                                .loss = evaluation.loss(),
                                .evaluation_seconds = evaluation.evaluation_seconds(),
                                .batch_norm = evaluation.batch_norm()};
  scoreboard_.add(result);
  if (curves_) {
    curves_->evaluated(result);
  }
  if (trace_) {
    trace_->evaluated(result);
  }
  if (!evaluations_) {
    evaluations_.emplace(options_.folder.evaluations(), JsonLines::Mode::append, warning());
  }
  Json line = to_json(result);
  evaluations_->write(line);
  evaluations_->flush();
  Json event{{"event", "evaluation"}};
  event.update(line);
  options_.emit(event);
}

void Recorder::checkpoint_written(const wire::Checkpoint& checkpoint) {
  if (checkpoint.has_skipped_round()) {
    checkpoint_skipped(checkpoint);
    return;
  }
  lost_model_.reset();
  if (trace_) {
    trace_->checkpoint_written(checkpoint.round());
  }
  expect_in_folder(checkpoint.path());
  options_.emit(
      {{"event", "checkpoint"}, {"path", checkpoint.path()}, {"round", checkpoint.round()}});
}

/// Warns only once: the parameters are seldom finite again.
void Recorder::checkpoint_skipped(const wire::Checkpoint& kept) {
  if (!lost_model_) {
    lost_model_ = LostModel{
        .round = kept.skipped_round(), .checkpoint = kept.path(), .checkpoint_round = kept.round()};
    warn(lost_model_->to_string());
  }
}

/// Warns if checkpoints are elsewhere: a member that was started by hand uses its own run folder.
void Recorder::expect_in_folder(const std::filesystem::path& checkpoint) {
  const auto normal = [](const std::filesystem::path& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  if (normal(checkpoint).parent_path() == normal(options_.folder.checkpoints()) ||
      std::exchange(warned_of_checkpoints_, true)) {
    return;
  }
  warn(
      fmt::format("checkpoints go to {}, where --resume of this coordinator does not look; start "
                  "the member that writes them with --run-dir {}",
                  checkpoint.parent_path().string(), normal(options_.folder.root()).string()));
}

void Recorder::paced(const PacerState& state) {
  pace_ = state;
}

PaceLog& Recorder::pace_log() {
  if (!pace_log_) {
    pace_log_.emplace(options_.folder.pace_log(),
                      options_.resumed ? JsonLines::Mode::append : JsonLines::Mode::create,
                      warning());
  }
  return *pace_log_;
}

void Recorder::pace_decided(const Pace& pace, Duration moment) {
  pace_log().decided(pace, moment);
  if (trace_) {
    trace_->decided(pace);
  }
}

void Recorder::stepped(Rank worker, const StepReport& report) {
  pace_log().stepped(worker, report);
}

void Recorder::left(const Member& member, const wire::Leave& leave) {
  note_down(member, leave.last());
  if (trace_) {
    trace_->left(member);
  }
}

void Recorder::dropped(const Member& member, const std::string& reason) {
  if (trace_) {
    trace_->dropped(member, reason);
  }
  if (member.role == Role::evaluator) {
    members_.evaluator_dropped_because = reason;
    warn(reason + "; the job goes on without it, and without evaluations");
    return;
  }
  members_.workers[member.rank];  // the summary lists it even if it has reported nothing
  members_.dropped[member.rank] = reason;
  warn(reason + "; the job goes on without it");
}

void Recorder::replaced(const Member& evaluator) {
  if (trace_) {
    trace_->replaced(evaluator);
  }
  members_.evaluator_dropped_because.reset();
  ++members_.evaluator_restarts;
  warn(fmt::format("{} runs again (pid {} on {})", name_of(evaluator.role, evaluator.rank),
                   evaluator.pid, evaluator.host));
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
  const std::string requester = end_requester();
  return options_.interrupted() && !requester.empty()
             ? std::optional(fmt::format("interrupted by {}", requester))
             : reason;
}

void Recorder::finish() {
  if (pace_log_) {
    pace_log_->finish();
  }
  emit_status();
  note_progress();
  Json result = make_summary({.config = options_.config,
                              .folder = options_.folder,
                              .view = view_,
                              .members = members_,
                              .job = keeper(),
                              .scoreboard = scoreboard_,
                              .ended_because = ended_because(),
                              .metrics = options_.metrics,
                              .lost_model = lost_model_});
  write_summary(result);
  write_trace();
  options_.emit(
      {{"event", "finished"}, {"reason", ended_because()}, {"summary", std::move(result)}});
}

/// An error here ends no job: training has ended well, its model is in a checkpoint, and the event
/// has the summary, too.
void Recorder::write_summary(const Json& summary) {
  try {
    write_file(options_.folder.summary(), json_text(summary, 2) + "\n");
  } catch (const DataError& error) {
    warn(fmt::format("{}; the `finished` event of `train --json` has the summary", error.what()));
  }
}

/// Called only for jobs that end well. After a failure there is no time for it; `syncopate trace`
/// does it later.
void Recorder::write_trace() {
  if (!trace_) {
    return;
  }
  trace_->flush();
  try {
    // Events show that the coordinator works: it takes seconds after a long run.
    merge_trace(options_.folder, [this] { emit_status(); });
  } catch (const DataError& error) {
    warn(fmt::format("{}; `syncopate trace` writes it later", error.what()));
  }
}

std::string Recorder::ended_because() const {
  if (stop_reason_) {
    return *stop_reason_;
  }
  const TrainConfig& config = options_.config;
  if (config.epochs >= open_end) {
    return "every program has left its loop";
  }
  const auto& workers = members_.workers;
  const bool all_stepped =
      config.max_steps && std::all_of(workers.begin(), workers.end(), [&](const auto& worker) {
        return members_.dropped.contains(worker.first) || worker.second.step() >= *config.max_steps;
      });
  if (all_stepped) {
    return "the limit of steps is reached";
  }
  if (config.max_time && metrics_in(keeper())[Metric::epochs] < config.epochs) {
    return "the limit of time is reached";
  }
  return "every epoch is done";
}

void Recorder::fail(const std::exception& error) {
  options_.emit({{"event", "failed"},
                 {"kind", wire::Abort::Kind_Name(to_abort(error).kind())},
                 {"error", error.what()}});
}

}  // namespace syncopate
