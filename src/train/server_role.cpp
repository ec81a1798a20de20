#include "train/server_role.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "checkpoint/model_of_shards.hpp"
#include "checkpoint/shard_messages.hpp"
#include "checkpoint/snapshot_writer.hpp"
#include "optim/schedule.hpp"
#include "optim/shard_ranges.hpp"
#include "report/counts.hpp"
#include "server/consistency.hpp"
#include "server/parameter_server.hpp"
#include "train/periodic_trigger.hpp"
#include "train/phase_clock.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

constexpr Duration tick = std::chrono::milliseconds(50);

bool wanted(const Every& every) {
  return every.unit != Every::Unit::never;
}

/// One shard at work.
class ServerRole {
 public:
  ServerRole(World& world, MemberLink& link, const ServerOptions& options);

  void run();
  wire::Heartbeat status(const std::string& phase);

 private:
  ValueRange range(const std::vector<TensorInfo>& layout) const;
  ShardStore::Options store_options() const;
  ConsistencyOptions consistency_options();
  void restore();
  void look_after_workers();
  void start_clock();
  void send_state();
  void keep_the_first();
  void keep_if_due();
  void keep(bool evaluate, bool checkpoint);
  void keep_the_last();
  void tell_status();
  void take_loss();
  bool first() const { return options_.shard == Rank{0}; }
  /// Another shard's state may still be asked for, until the first says that it will not be.
  bool awaits_first_shard() const {
    return !first() && !finished_ && options_.plan.server_keeps_model();
  }
  double epoch() const;
  Progress progress() const;
  Duration training() const;
  PeriodicTrigger::Moment moment() const;

  World& world_;
  MemberLink& link_;
  const ServerOptions& options_;
  const TrainConfig& config_;
  std::vector<NodeId> servers_;
  Schedule schedule_;
  Progress start_;
  ShardStore store_;
  std::unique_ptr<Consistency> consistency_;
  ParameterServer server_;
  std::optional<NodeId> evaluator_;  ///< whom the keeper has the model tested by
  std::optional<SnapshotWriter> snapshots_;
  PeriodicTrigger evaluations_;
  PeriodicTrigger checkpoints_;
  std::optional<TrainingClock> clock_;  ///< runs once every worker has started
  std::optional<Duration> ended_;       ///< what it showed when the last worker had left
  Duration paused_{};
  PeriodicTrigger::Moment asked_{};
  TimePoint next_status_{};
  double status_loss_ = 0;            ///< sums as of the last status
  std::uint64_t status_samples_ = 0;  ///< likewise
  double loss_ = 0;                   ///< mean between the last two
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
               .compression = config_.compress}),
      evaluations_(config_.eval_every, options.plan.steps_per_epoch(options.train_samples)),
      checkpoints_(config_.checkpoint_every, options.plan.steps_per_epoch(options.train_samples)) {
  if (first() && options.plan.server_keeps_model()) {
    const Member* evaluator = link.view().find(Role::evaluator, Rank{0});
    evaluator_ = evaluator ? std::optional(evaluator->node) : std::nullopt;
    snapshots_.emplace(world, link,
                       SnapshotWriter::Options{.evaluator = evaluator_,
                                               .layout = options.layout,
                                               .folder = options.folder,
                                               .network = std::string(config_.network->name)});
  }
  if (options.resume_from && options.plan.server_keeps_model()) {
    restore();
  }
  server_.set_clock(start_.training, {});
  asked_ = moment();
}

void ServerRole::run() {
  while (!server_.all_gone() || awaits_first_shard()) {
    link_.check();  // a server outlives lost peers, but not the job
    const ParameterServer::ShardRequests asked = server_.serve(world_.now() + tick);
    if (asked.state) {
      send_state();
    }
    finished_ = finished_ || asked.finish;
    look_after_workers();
    start_clock();
    keep_if_due();
    tell_status();
  }
  ended_ = training();
  keep_the_last();
}

/// The training clock, which stops with the last worker.
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
      .threads = options_.hands,
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

void ServerRole::look_after_workers() {
  for (const wire::Dropped& dropped : link_.take_dropped()) {
    server_.drop(Rank{dropped.rank()});
  }
}

void ServerRole::start_clock() {
  // Who only adds hands out no model to start with.
  const bool adds = !options_.plan.server_keeps_model() && server_.queue_length().count() > 0;
  if (!clock_ && (adds || server_.all_started())) {
    clock_.emplace(world_, start_.training);
    keep_the_first();
  }
  if (clock_) {
    server_.set_clock(clock_->now(), paused_);
  }
}

/// The model before the first update: no worker trains before all have started.
void ServerRole::keep_the_first() {
  if (snapshots_ && start_ == Progress{} && wanted(config_.checkpoint_every)) {
    keep(/*evaluate=*/false, /*checkpoint=*/true);
  }
}

void ServerRole::send_state() {
  world_.transport().post(servers_.front(), tags::server_state, encode_state(store_.state()));
}

void ServerRole::keep_if_due() {
  if (!snapshots_) {
    return;
  }
  const PeriodicTrigger::Moment before = std::exchange(asked_, moment());
  const bool evaluate = evaluations_.due(before, asked_);
  const bool checkpoint = checkpoints_.due(before, asked_);
  if (evaluate || checkpoint) {
    keep(evaluate, checkpoint);
  }
}

/// What the workers wait for meanwhile comes off the training clock.
void ServerRole::keep(bool evaluate, bool checkpoint) {
  const TimePoint begun = world_.now();
  for (std::uint32_t shard = 1; shard < servers_.size(); ++shard) {
    server_.send(shard, {.kind = Request::Kind::collect});
  }
  const Progress now = progress();
  snapshots_->keep({.stamp = {.round = now.round,
                              .samples = now.samples,
                              .epoch = epoch(),
                              .training_seconds = to_seconds(now.training)},
                    .progress = now,
                    .evaluate = evaluate,
                    .checkpoint = checkpoint,
                    .model = [this, first = store_.state()]() mutable {
                      return model_of_shards(world_.transport(), servers_, std::move(first));
                    }});
  const Duration pause = world_.now() - begun;
  paused_ += pause;
  if (clock_) {
    clock_->take_off(pause);
  }
}

void ServerRole::keep_the_last() {
  if (!snapshots_) {
    return;
  }
  if (wanted(config_.eval_every) || wanted(config_.checkpoint_every)) {
    keep(wanted(config_.eval_every), wanted(config_.checkpoint_every));
  }
  for (std::uint32_t shard = 1; shard < servers_.size(); ++shard) {
    server_.send(shard, {.kind = Request::Kind::finish});
  }
  snapshots_->finish();
}

void ServerRole::tell_status() {
  if (world_.now() < next_status_) {
    return;
  }
  next_status_ = world_.now() + tick;
  link_.set_status(status("serving"));
}

/// Of what has come since the last status; where nothing has, that one's loss stands.
void ServerRole::take_loss() {
  const std::uint64_t samples = store_.samples() - std::exchange(status_samples_, store_.samples());
  const double loss = store_.loss_sum() - std::exchange(status_loss_, store_.loss_sum());
  if (samples > 0) {
    loss_ = loss / static_cast<double>(samples);
  }
}

wire::Heartbeat ServerRole::status(const std::string& phase) {
  take_loss();
  const Progress now = progress();
  wire::Heartbeat status;
  status.set_phase(phase);
  status.set_step(now.step);
  status.set_round(now.round);
  status.set_epoch(epoch());
  status.set_loss(loss_);
  status.set_job_samples(now.samples);
  status.set_job_seconds(to_seconds(now.training));
  status.set_session_samples(now.samples - start_.samples);
  status.set_session_seconds(to_seconds(now.training - start_.training));
  const Traffic traffic = world_.transport().traffic();
  status.set_bytes_sent(traffic.bytes_sent);
  status.set_bytes_handed_over(traffic.bytes_zero_copy);
  if (evaluator_) {
    status.set_evaluation_bytes(world_.transport().traffic_to(*evaluator_).bytes_sent);
  }
  status.set_busy_seconds(to_seconds(server_.busy()));
  *status.mutable_queue_length() = to_wire(server_.queue_length());
  return status;
}

double ServerRole::epoch() const {
  return static_cast<double>(store_.samples()) / static_cast<double>(options_.train_samples);
}

Progress ServerRole::progress() const {
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
    *leave.mutable_last() = role.status("done");
    link.leave(leave);
  } catch (const std::exception& error) {
    link.fail(error);
  }
}

}  // namespace syncopate
