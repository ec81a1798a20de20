#include "train/worker.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "collective/allgather.hpp"
#include "scheme/registry.hpp"
#include "train/initial_state.hpp"
#include "train/names.hpp"
#include "train/trainer.hpp"

namespace syncopate {
namespace {

Group group_of_workers(World& world, MemberLink& link, const WorkerOptions& options) {
  return Group(world, {.members = link.view().nodes(Role::worker),
                       .self = options.rank,
                       .wait_limit = from_seconds(options.plan.config().wait_limit),
                       .arbiter = &link,
                       .losses = options.plan.workers_regroup() ? &link : nullptr,
                       .hosts = link.view().hosts(Role::worker)});
}

std::optional<NodeId> evaluator_of(const View& view) {
  const Member* evaluator = view.find(Role::evaluator, Rank{0});
  return evaluator ? std::optional(evaluator->node) : std::nullopt;
}

Weights weights_of(const TrainConfig& config) {
  if (config.weights == "data") {
    return Weights::data;
  }
  return config.weights == "uniform" ? Weights::uniform : Weights::samples;
}

LocalProgress::Options local_of(const TrainConfig& config) {
  return {.momentum = uses_momentum(config.optimizer) ? config.momentum : 0,
          .nesterov = config.optimizer == "nesterov",
          .shared_rate = config.local_rate == "round"};
}

/// By which workers add up, where no server does.
Algorithm algorithm_of(const TrainConfig& config) {
  return algorithm_named(config.aggregate).value_or(Algorithm::automatic);
}

Commit commit_of(const TrainConfig& config) {
  if (config.commit == "racy") {
    return Commit::racy;
  }
  return config.commit == "barrier" ? Commit::barrier : Commit::overlap;
}

SignalRule signal_of(const TrainConfig& config) {
  return config.signal == "batch" ? SignalRule::batch : SignalRule::contribution;
}

/// What a replica exchanges should be where the others of the host reach it.
void lend(Replica& replica, SharedMemory* memory) {
  if (memory == nullptr) {
    return;
  }
  try {
    replica.move_into(*memory);
  } catch (const DataError& error) {
    log::warn("{}: what workers of this host exchange is copied", error.what());
  }
}

/// Seconds a sample of a forward and backward pass over the first `samples` of a worker. Leaves traces in the
/// replica's buffers and gradients.
double seconds_a_sample(const Clock& clock, Replica& replica, const WorkerOptions& options,
                        std::size_t samples) {
  BatchFeed feed = options.plan.feed(options.dataset.train, options.rank);
  const auto indices = feed.batch({});
  Batch batch;
  gather(options.dataset, options.dataset.train,
         indices.first(std::min<std::size_t>(samples, indices.size())), batch);
  const TimePoint begun = clock.now();
  replica.backward(batch);
  const double seconds = to_seconds(clock.now() - begun);
  return seconds / static_cast<double>(std::max<std::size_t>(1, batch.samples()));
}

/// Samples per second of a real device in a pass over a whole batch; 0 where that would keep the others waiting
/// for long.
double measured_throughput(const Clock& clock, Replica& replica, const WorkerOptions& options) {
  constexpr double longest_seconds = 2;
  const std::uint32_t whole = options.plan.batch_sizes()[options.rank.value];
  const std::uint32_t part = probe_samples(whole);
  seconds_a_sample(clock, replica, options, part);  // the first pass of a process takes longer
  if (seconds_a_sample(clock, replica, options, part) * whole > longest_seconds) {
    return 0;
  }
  const double seconds = seconds_a_sample(clock, replica, options, whole);
  return seconds > 0 ? 1 / seconds : 0;
}

/// What is known of a device by itself before training, where its steps will not tell; 0: nothing.
double known_throughput(const Clock& clock, Replica& replica, const WorkerOptions& options) {
  const double profiled = options.plan.profiled_throughput(options.rank);
  return profiled == 0 && options.plan.cuts_batches() ? measured_throughput(clock, replica, options)
                                                      : profiled;
}

/// Below this many samples BatchNorm's mean and variance of a batch say little of those of the data.
constexpr std::uint32_t few_samples = 16;

std::string_view way_to_larger_steps(const TrainConfig& config) {
  if (is_paced(config)) {
    return ", or --pacing paper, whose steps are whole batches";
  }
  return config.balance ? ", or leave out --balance" : ", or fewer --mini-batches";
}

void warn_of_small_batches(const JobPlan& plan) {
  const std::uint32_t least = plan.least_step_samples();
  if (least < few_samples) {
    log::warn(
        "a step may take as few as {} samples, which is little for the statistics of BatchNorm: "
        "below {} they are noisy; use a larger --batch-size{}",
        least, few_samples, plan.cuts_batches() ? way_to_larger_steps(plan.config()) : "");
  }
}

/// A worker's model, and where it meets others, before its first step.
class Beginning {
 public:
  Beginning(World& world, MemberLink& link, Replica& replica, const WorkerOptions& options);

  const Progress& progress() const { return progress_; }
  /// What a checkpoint says of this worker's loop, and of the pacer.
  std::optional<LoopState> loop() const { return loop_state_in(own_); }
  std::optional<wire::PacerMemory> pacer() const;
  const States& states() const { return own_; }
  double stand_alone_throughput() const { return stand_alone_throughput_; }
  std::unique_ptr<Scheme> make_scheme();

 private:
  const TrainConfig& config() const { return options_.plan.config(); }
  std::size_t values(Part part) { return replica_.view(part).size(); }
  bool has_spare_core() const;
  Commit commit();
  Progress begin();
  Progress begin_together();
  Progress begin_from_server();
  void begin_in_shared_memory();

  const WorkerOptions& options_;
  Replica& replica_;
  PaceLine& pacer_;
  Group workers_;
  std::optional<ServerClient> server_;
  Reply server_start_{};
  OptimizerState outer_state_{};
  States own_;
  OptimizerState pacer_state_{};
  std::optional<SharedModel> shared_;
  double stand_alone_throughput_ = 0;
  Progress progress_;
};

Beginning::Beginning(World& world, MemberLink& link, Replica& replica, const WorkerOptions& options)
    : options_(options),
      replica_(replica),
      pacer_(link),
      workers_(group_of_workers(world, link, options)) {
  if (has_server(config())) {
    server_.emplace(world,
                    ServerClient::Options{.servers = link.view().nodes(Role::server),
                                          .wait_limit = from_seconds(config().wait_limit),
                                          .arbiter = &link,
                                          .compression = Compression::parse(config().compress),
                                          .compress_remote = config().compress_remote});
  }
  lend(replica_, world.transport().shared_memory());
  stand_alone_throughput_ = known_throughput(world, replica_, options);
  progress_ = begin();
}

/// Of the worker that has read the checkpoint.
std::optional<wire::PacerMemory> Beginning::pacer() const {
  const bool tells = options_.rank == Rank{0} && !pacer_state_.counters.empty();
  return tells ? std::optional(pacer_memory_in(pacer_state_)) : std::nullopt;
}

/// While an allreduce travels, a worker of a host whose cores are all taken keeps the others from it by
/// computing on: measured with four workers on two cores, 87 % of the mini-batches were one update late.
/// There each waits for the allreduce, and the others have its core. All workers come to the same.
Commit Beginning::commit() {
  const Commit wanted = commit_of(config());
  if (config().scheme != "nbssgd" || wanted != Commit::overlap || workers_.size() == 1) {
    return wanted;
  }
  const bool emulated = options_.plan.pacer(options_.rank).has_value();
  const std::uint8_t takes_turns = !emulated && options_.cores > 0 && !has_spare_core() ? 1 : 0;
  std::vector<std::uint8_t> all(workers_.size());
  allgather(workers_, std::as_bytes(std::span(&takes_turns, 1)),
            std::as_writable_bytes(std::span(all)));
  return std::find(all.begin(), all.end(), 0) == all.end() ? Commit::barrier : Commit::overlap;
}

/// Whether this host has a core that no worker computes on.
bool Beginning::has_spare_core() const {
  const std::vector<std::uint32_t>& hosts = workers_.hosts();
  const auto here = std::count(hosts.begin(), hosts.end(), hosts[workers_.rank().value]);
  return options_.cores > static_cast<std::uint64_t>(here) * config().threads;
}

Progress Beginning::begin() {
  if (options_.plan.server_keeps_model()) {
    return begin_from_server();
  }
  const Progress start = begin_together();
  progress_ = start;
  if (!options_.shared_memory.empty()) {
    begin_in_shared_memory();
  }
  return start;
}

Progress Beginning::begin_together() {
  if (options_.resume_from) {
    Restored restored = restore_state(workers_, replica_, config(), *options_.resume_from);
    outer_state_ = std::move(restored.outer_state);
    own_ = std::move(restored.own);
    pacer_state_ = std::move(restored.pacer);
    return restored.progress;
  }
  draw_initial_state(workers_, replica_, config());
  return {};
}

/// A new job's first model is drawn by the workers and handed over by one of them; one that goes on
/// has its model from the server.
Progress Beginning::begin_from_server() {
  if (!options_.resume_from) {
    draw_initial_state(workers_, replica_, config());
    if (options_.rank == Rank{0}) {
      server_->upload(replica_.view(Part::params), replica_.view(Part::buffers));
    }
  }
  server_start_ = server_->start(replica_.view(Part::params), replica_.view(Part::buffers));
  replica_.store(Part::params);
  replica_.store(Part::buffers);
  return {.step = server_start_.steps,
          .round = server_start_.version,
          .samples = server_start_.samples,
          .training = server_start_.training};
}

void Beginning::begin_in_shared_memory() {
  shared_.emplace(options_.shared_memory, SharedModel::Size{.params = values(Part::params),
                                                            .buffers = values(Part::buffers),
                                                            .workers = config().workers});
  const auto resumed = loop();
  shared_->leave_position(
      options_.rank, {.step = progress_.step,
                      .data = resumed ? resumed->position : DataPosition{.batch = progress_.step}});
  if (options_.rank == Rank{0}) {
    shared_->load(replica_.view(Part::params),
                  {.updates = progress_.round, .samples = progress_.samples});
  }
}

std::unique_ptr<Scheme> Beginning::make_scheme() {
  const auto per_epoch = static_cast<double>(options_.dataset.train.samples());
  const std::uint64_t to_do = options_.plan.samples_to_train(options_.dataset.train.samples());
  return syncopate::make_scheme(
      {.workers = workers_,
       .server = server_ ? &*server_ : nullptr,
       .start = server_start_,
       .shared = shared_ ? &*shared_ : nullptr,
       .pacer = &pacer_,
       .replica = &replica_},
      {.name = config().scheme,
       .weights = weights_of(config()),
       .data_share = options_.plan.data_share(options_.dataset.train, options_.rank),
       .algorithm = algorithm_of(config()),
       .compression = Compression::parse(config().compress),
       .compress_remote = config().compress_remote,
       .momentum = uses_momentum(config().optimizer) ? config().momentum : 0,
       .done = Round{progress_.round},
       .weight = options_.plan.push_weight(),
       .push_every = config().push_every,
       .fetch_every = config().fetch_every,
       .local_steps = config().local_steps,
       .outer = options_.plan.outer_rule(),
       .outer_rate = config().global_lr.value(),
       .outer_state = outer_state_,
       .local = local_of(config()),
       .control_variates = config().drift_correction == "scaffold",
       .overlap = is_paced(config()) && config().overlap != "off",
       .buckets = {.overlap = config().overlap != "off",
                   .in_memory = config().overlap == "on" || has_spare_core()},
       .first_pace = options_.plan.first_pace(options_.rank),
       .batch_size = options_.plan.batch_sizes()[options_.rank.value],
       .balanced = config().balance ? options_.plan.batch_sizes() : std::vector<std::uint32_t>(),
       // BatchNorm, which is what has buffers, needs two samples for a variance.
       .least_step = values(Part::buffers) > 0 ? 2U : 1U,
       .samples_to_do = to_do - std::min(to_do, progress_.samples),
       .batch = options_.plan.batch_cut(options_.rank),
       .signal = signal_of(config()),
       .commit = commit(),
       .samples_done = progress_.samples,
       .learning_rate = [schedule = Schedule(config()), per_epoch](std::uint64_t done) {
         return schedule.rate(static_cast<double>(done) / per_epoch);
       }});
}

}  // namespace

void run_worker(World& world, MemberLink& link, Replica& replica, const WorkerOptions& options) {
  const View& view = link.join();
  try {
    Beginning beginning(world, link, replica, options);
    keep_rounds_up_to(options.folder.worker_log(options.rank), beginning.progress().round);
    if (options.rank == Rank{0} && !replica.layout(Part::buffers).empty()) {
      warn_of_small_batches(options.plan);
    }
    link.restart(beginning.pacer());
    const auto scheme = beginning.make_scheme();
    scheme->load_worker_states(beginning.states());
    Trainer trainer(
        world, link, replica, *scheme,
        {.config = options.plan.config(),
         .dataset = options.dataset,
         .feed = options.plan.feed(options.dataset.train, options.rank),
         .pacer = options.plan.pacer(options.rank),
         .folder = options.folder,
         .rank = options.rank,
         .gait = options.plan.gait(),
         .samples_per_step = options.plan.samples_per_step(),
         .batch_size = options.plan.batch_sizes()[options.rank.value],
         .samples_to_train = options.plan.samples_to_train(options.dataset.train.samples()),
         .start = beginning.progress(),
         .resumed = beginning.loop(),
         .own_optimizers = has_local_rounds(options.plan.config()),
         .leads = options.rank == Rank{0} && !options.plan.server_keeps_model(),
         .gathers_at_the_end = meets_in_shared_memory(options.plan.config()),
         .evaluator = evaluator_of(view),
         .stand_alone_throughput = beginning.stand_alone_throughput()});
    trainer.run();
    wire::Leave leave;
    *leave.mutable_last() = trainer.status("done");
    link.leave(leave);
  } catch (const std::exception& error) {
    link.fail(error);
  }
}

}  // namespace syncopate
