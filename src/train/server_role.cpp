#include <fmt/format.h>

#include <limits>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "checkpoint/shard_states.hpp"
#include "checkpoint/snapshot.hpp"
#include "optim/rule_state.hpp"
#include "optim/schedule.hpp"
#include "server/consistency.hpp"
#include "server/parameter_server.hpp"
#include "telemetry/member_status.hpp"
#include "train/member_roles.hpp"
#include "train/server_trace.hpp"
#include "train/training_clock.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

constexpr Duration tick = std::chrono::milliseconds(50);

/// One shard of a parameter server.
class ServerRole {
 public:
  ServerRole(World& world, MemberLink& link, const ServerOptions& options);
  ~ServerRole() { link_.set_status_source({}); }
  ServerRole(const ServerRole&) = delete;
  ServerRole& operator=(const ServerRole&) = delete;

  void run();
  wire::Heartbeat last_status();

 private:
  ValueRange range(const std::vector<TensorInfo>& layout) const;
  ShardStore::Options store_options() const;
  ConsistencyOptions consistency_options();
  void restore();
  void drop_lost_workers();
  void start_clock();
  void end_in_time();
  void send_state();
  void report(const ParameterServer::Rejection& rejection);
  void save_first();
  void save_if_due();
  void save(bool evaluate, bool checkpoint);
  void save_last();
  void report_status(std::string_view phase);
  void update_loss();
  bool first() const { return options_.shard == Rank{0}; }
  /// True while the first shard may still ask for this shard's state.
  bool awaits_first_shard() const {
    return !first() && !finished_ && options_.plan.server_keeps_model();
  }
  double epoch() const;
  TrainingProgress progress() const;
  Duration training() const;
  PeriodicTrigger::Moment moment() const;

  World& world_;
  MemberLink& link_;
  const ServerOptions& options_;
  const TrainConfig& config_;
  std::vector<NodeId> servers_;
  Schedule schedule_;
  TrainingProgress start_;
  ShardStore store_;
  std::unique_ptr<Consistency> consistency_;
  ParameterServer server_;
  std::optional<SnapshotWriter> snapshots_;
  PeriodicTrigger evaluations_;
  std::optional<std::uint64_t> tested_version_;  ///< of the model whose snapshot was tested last
  PeriodicTrigger checkpoints_;
  std::optional<TrainingClock> clock_;  ///< runs once every worker has started
  std::optional<Duration> ended_;       ///< its reading when training had ended
  bool reported_out_of_time_ = false;
  Duration paused_{};
  ServerTrace trace_;
  StatusBoard status_;
  TimePoint next_status_{};
  double status_loss_ = 0;            ///< sum of losses at the last status
  std::uint64_t status_samples_ = 0;  ///< samples at the last status
  /// Mean between the last two; not a number before the first.
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  bool finished_ = false;
};

ServerRole::ServerRole(World& world, MemberLink& link, const ServerOptions& options)
    : world_(world),
      link_(link),
      options_(options),
      config_(options.plan.config()),
      servers_(link.view().nodes(Role::server)),
      schedule_(options.plan.server_schedule()),
      store_(store_options()),
      consistency_(make_consistency(store_, consistency_options())),
      server_(world, store_, *consistency_,
              {.workers = link.view().nodes(Role::worker),
               .servers = servers_,
               .wait_limit = from_seconds(config_.wait_limit),
               .compression = config_.compress,
               .arbiter = &link}),
      evaluations_(config_.eval_every, options.plan.steps_per_epoch(options.train_samples)),
      checkpoints_(config_.checkpoint_every, options.plan.steps_per_epoch(options.train_samples)),
      trace_(world, config_.trace, options.folder, *link.view().find(Role::server, options.shard)) {
  if (first() && options.plan.server_keeps_model()) {
    snapshots_.emplace(world, link,
                       SnapshotWriter::Options{.layout = options.layout,
                                               .folder = options.folder,
                                               .network = std::string(config_.network->name)});
  }
  if (options.resume_from && options.plan.server_keeps_model()) {
    restore();
  }
  server_.set_clock(start_.training, {});
  evaluations_.restart(moment());
  checkpoints_.restart(moment());
  report_status("serving");
  link_.set_status_source([this] { return status_.message(); });
}

void ServerRole::run() {
  while (!server_.all_gone() || awaits_first_shard()) {
    link_.check();  // a server outlives lost peers, but not the job
    link_.stands_by();
    const Duration busy = server_.busy();
    const ParameterServer::ShardRequests asked = server_.serve(world_.now() + tick);
    trace_.handled(server_.busy() - busy);
    if (asked.state) {
      send_state();
    }
    if (asked.rejected) {
      report(*asked.rejected);
    }
    finished_ = finished_ || asked.finish;
    drop_lost_workers();
    start_clock();
    end_in_time();
    save_if_due();
    if (world_.now() >= next_status_) {
      next_status_ = world_.now() + tick;
      report_status("serving");
    }
  }
  ended_ = training();  // unless it had ended before
  report_status(phase_snapshot);
  save_last();
  trace_.flush();
}

/// The training clock, which stops when the job is asked to end, else with the last worker.
Duration ServerRole::training() const {
  return ended_ ? *ended_ : clock_ ? clock_->now() : start_.training;
}

ValueRange ServerRole::range(const std::vector<TensorInfo>& layout) const {
  return range_of_shard(values_in(layout), options_.shard.value,
                        static_cast<std::uint32_t>(servers_.size()));
}

ShardStore::Options ServerRole::store_options() const {
  ShardStore::Options options{
      .params = range(options_.layout.params).count,
      .buffers = range(options_.layout.buffers).count,
      .workers = config_.workers,
      .rule = options_.plan.server_rule(),
      .learning_rate =
          [this](std::uint64_t samples) {
            return schedule_.rate(static_cast<double>(samples) /
                                  static_cast<double>(options_.train_samples));
          },
      .compensation = options_.plan.delay_compensation(),
      .max_delay = options_.plan.max_delay(),
      .threads = options_.threads,
      .samples_to_train = options_.plan.samples_to_train(options_.train_samples)};
  if (!options_.plan.server_keeps_model()) {
    options.buffers = 0;
  }
  return options;
}

ConsistencyOptions ServerRole::consistency_options() {
  ConsistencyOptions options = options_.plan.consistency();
  options.first_shard = first();
  options.notify_shards = [this](std::uint64_t step, const std::vector<Rank>& workers) {
    for (std::uint32_t shard = 1; shard < servers_.size(); ++shard) {
      server_.send(shard, {.kind = Request::Kind::verdict, .step = step, .ranks = workers});
    }
  };
  return options;
}

void ServerRole::restore() {
  const Checkpoint checkpoint(read_file(*options_.resume_from), options_.resume_from->string(),
                              std::string(config_.network->name));
  start_ = checkpoint.progress();
  const std::vector<float> params = checkpoint.values(options_.layout.params);
  const auto mine = part(std::span(params), range(options_.layout.params));
  store_.restore({.params = {mine.begin(), mine.end()},
                  .buffers = {},
                  .rest = checkpoint.state(fmt::format("server.{}", options_.shard.value))});
  consistency_->on_resumed();
}

void ServerRole::drop_lost_workers() {
  for (const wire::Dropped& dropped : link_.take_dropped()) {
    server_.drop(Rank{dropped.rank()});
  }
}

void ServerRole::start_clock() {
  // A server that only reduces gives workers no model to start with.
  const bool reduces = !options_.plan.server_keeps_model() && server_.queue_length().count() > 0;
  if (!clock_ && (reduces || server_.all_started())) {
    clock_.emplace(world_, start_.training);
    save_first();
  }
  if (clock_) {
    server_.set_clock(clock_->now(), paused_);
  }
}

/// The clock of the first shard is that of the job. The shard itself checks the limit of time,
/// because every worker may be suspended, or wait for a suspended one.
void ServerRole::end_in_time() {
  if (!options_.plan.server_keeps_model()) {
    return;  // it serves until the workers agree on the end
  }
  const bool out_of_time = config_.max_time && to_seconds(training()) >= *config_.max_time;
  if (first() && clock_ && out_of_time && !std::exchange(reported_out_of_time_, true)) {
    link_.report_complete(MemberLink::Limit::time);
  }
  if (!ended_ && link_.stop_reason()) {
    ended_ = training();
  }
}

/// Saves the model before the first update: no worker trains before all have started.
void ServerRole::save_first() {
  if (snapshots_ && start_ == TrainingProgress{} && checkpoints_.is_active()) {
    save(/*evaluate=*/false, /*checkpoint=*/true);
  }
}

void ServerRole::send_state() {
  world_.transport().post(servers_.front(), tags::server_state, encode_state(store_.state()));
}

/// The coordinator decides whether the job continues without the worker.
void ServerRole::report(const ParameterServer::Rejection& rejection) {
  wire::ToCoordinator message;
  message.mutable_rejected()->set_node(rejection.worker.value);
  message.mutable_rejected()->set_reason(fmt::format(
      "{} cannot accept its request: {}", name_of(Role::server, options_.shard), rejection.reason));
  link_.send(message);
}

void ServerRole::save_if_due() {
  if (!snapshots_) {
    return;
  }
  const PeriodicTrigger::Moment now = moment();
  const bool evaluate = evaluations_.due(now);
  const bool checkpoint = checkpoints_.due(now);
  if (evaluate || checkpoint) {
    save(evaluate, checkpoint);
  }
}

/// The workers wait meanwhile, so the time comes off the training clock.
void ServerRole::save(bool evaluate, bool checkpoint) {
  const TimePoint begun = world_.now();
  for (std::uint32_t shard = 1; shard < servers_.size(); ++shard) {
    server_.send(shard, {.kind = Request::Kind::collect});
  }
  const TrainingProgress now = progress();
  if (evaluate) {
    tested_version_ = now.round;
  }
  snapshots_->save({.stamp = {.round = now.round,
                              .samples = now.samples,
                              .epoch = epoch(),
                              .training_seconds = to_seconds(now.training)},
                    .progress = now,
                    .evaluate = evaluate,
                    .checkpoint = checkpoint,
                    .model = [this, first = store_.state()]() mutable {
                      return model_of_shards(link_, servers_, std::move(first));
                    }});
  trace_.saved(begun);
  const Duration pause = world_.now() - begun;
  paused_ += pause;
  if (clock_) {
    clock_->take_off(pause);
  }
}

void ServerRole::save_last() {
  if (!snapshots_) {
    return;
  }
  const bool evaluate = evaluations_.is_active() && tested_version_ != store_.version();
  if (evaluate || checkpoints_.is_active()) {
    save(evaluate, checkpoints_.is_active());
  }
  for (std::uint32_t shard = 1; shard < servers_.size(); ++shard) {
    server_.send(shard, {.kind = Request::Kind::finish});
  }
  snapshots_->finish();
}

/// The mean loss of the samples since the last status; without samples the previous mean stays.
void ServerRole::update_loss() {
  const std::uint64_t samples = store_.samples() - std::exchange(status_samples_, store_.samples());
  const double loss = store_.loss_sum() - std::exchange(status_loss_, store_.loss_sum());
  if (samples > 0) {
    loss_ = loss / static_cast<double>(samples);
  }
}

void ServerRole::report_status(std::string_view phase) {
  update_loss();
  const TrainingProgress now = progress();
  const Transport& transport = world_.transport();
  trace_.progressed(static_cast<double>(now.round));
  const std::uint64_t snapshots = link_.bytes_to_evaluators();
  const Traffic traffic = transport.traffic();
  status_.update([&](MemberStatus& status) {
    status.phase = phase;
    status.queue_length = server_.queue_length();
    MetricValues& metrics = status.metrics;
    metrics.set(Metric::steps, now.step);
    metrics.set(Metric::rounds, now.round);
    metrics.set(Metric::epochs, epoch());
    metrics.set(Metric::loss, loss_);
    metrics.set(Metric::job_samples, now.samples);
    metrics.set(Metric::job_seconds, to_seconds(now.training));
    metrics.set(Metric::samples, now.samples - start_.samples);
    metrics.set(Metric::session_seconds, to_seconds(now.training - start_.training));
    metrics.set(Metric::bytes_sent, traffic.bytes_sent);
    metrics.set(Metric::local_bytes, traffic.bytes_zero_copy);
    metrics.set(Metric::evaluation_bytes, snapshots);
    metrics.set(Metric::busy_seconds, to_seconds(server_.busy()));
  });
}

wire::Heartbeat ServerRole::last_status() {
  report_status("done");
  return status_.message();
}

double ServerRole::epoch() const {
  return static_cast<double>(store_.samples()) / static_cast<double>(options_.train_samples);
}

TrainingProgress ServerRole::progress() const {
  return {.step = static_cast<std::uint64_t>(moment().step),
          .round = store_.version(),
          .samples = store_.samples(),
          .training = training()};
}

PeriodicTrigger::Moment ServerRole::moment() const {
  return {.step = static_cast<double>(store_.samples()) / options_.plan.samples_per_step(),
          .training = training()};
}

}  // namespace

void run_server(World& world, MemberLink& link, const ServerOptions& options) {
  link.join();
  try {
    ServerRole role(world, link, options);
    role.run();
    wire::Leave leave;
    *leave.mutable_last() = role.last_status();
    link.leave(leave);
  } catch (const std::exception& error) {
    link.fail(error);
  }
}

}  // namespace syncopate
