#include "train/worker_setup.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "collective/basic_collectives.hpp"
#include "pacer/pacer_control.hpp"
#include "scheme/scheme_options.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {
namespace {

Group group_of_workers(World& world, MemberLink& link, const WorkerOptions& options) {
  return Group(world, {.members = link.view().nodes(Role::worker),
                       .self = options.rank,
                       .wait_limit = from_seconds(options.plan.config().wait_limit),
                       .arbiter = &link,
                       .failures = options.plan.workers_regroup() ? &link : nullptr,
                       .hosts = link.view().hosts(Role::worker)});
}

/// True if a program continues with the model that the server has.
bool takes_model(const WorkerOptions& options) {
  return options.program && options.plan.server_keeps_model();
}

/// Moves the values that a replica exchanges into memory that the host's other nodes can read.
void share_memory(Replica& replica, SharedMemory* memory) {
  if (memory == nullptr) {
    return;
  }
  try {
    replica.move_into(*memory);
  } catch (const DataError& error) {
    log::warn("{}: workers of this host exchange copies", error.what());
  }
}

/// Seconds per sample of a forward and backward pass over the first `samples` of a worker. Changes
/// the replica's buffers and gradients.
double seconds_per_sample(const Clock& clock, Replica& replica, const WorkerOptions& options,
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

/// The speed of a real device in a pass over a whole batch, and, if the scheme wants to know it,
/// the size below which passes are slow. Nothing is known if the measurement would keep the other
/// workers waiting for long.
DeviceMeasurement measured_device(const Clock& clock, Replica& replica,
                                  const WorkerOptions& options) {
  constexpr double longest_seconds = 2;
  const std::uint32_t whole = options.plan.batch_sizes()[options.rank.value];
  const std::uint32_t part = probe_samples(whole);
  const auto seconds_of_pass = [&](std::uint32_t samples) {
    return seconds_per_sample(clock, replica, options, samples) * samples;
  };
  seconds_of_pass(part);  // the first pass of a process takes longer
  if (seconds_of_pass(part) / part * whole > longest_seconds) {
    return {};
  }
  const double seconds = seconds_of_pass(whole);
  DeviceMeasurement device{.samples_per_second = seconds > 0 ? whole / seconds : 0};
  if (options.plan.measures_batches()) {
    const std::uint32_t several = std::min(4 * part, whole);
    seconds_of_pass(several);
    const auto best_of_two = [&](std::uint32_t samples) {
      const double once = seconds_of_pass(samples);
      return std::min(once, seconds_of_pass(samples));
    };
    device.efficient_samples =
        efficient_samples({.samples = part, .seconds = best_of_two(part)},
                          {.samples = several, .seconds = best_of_two(several)}, whole);
  }
  return device;
}

/// The device of a cluster file.
DeviceMeasurement profiled_device(const WorkerOptions& options) {
  DeviceMeasurement device{.samples_per_second = options.plan.profiled_throughput(options.rank)};
  if (options.plan.measures_batches()) {
    const DevicePacer pacer = options.plan.pacer(options.rank).value();
    const std::uint32_t whole = options.plan.batch_sizes()[options.rank.value];
    const auto timed = [&](std::uint32_t samples) {
      return TimedPass{.samples = samples, .seconds = to_seconds(pacer.mean_step_time(samples))};
    };
    device.efficient_samples = efficient_samples(timed(1), timed(whole), whole);
  }
  return device;
}

/// The device by itself, as far as it is known before training.
DeviceMeasurement known_device(const Clock& clock, Replica& replica, const WorkerOptions& options) {
  if (options.plan.pacer(options.rank)) {
    return profiled_device(options);
  }
  const bool measurable = !options.program && options.plan.cuts_batches();
  return measurable ? measured_device(clock, replica, options) : DeviceMeasurement();
}

}  // namespace

WorkerSetup::WorkerSetup(World& world, MemberLink& link, PacerClient& pacer, Replica& replica,
                         const WorkerOptions& options)
    : options_(options),
      replica_(replica),
      pacer_(pacer),
      workers_(group_of_workers(world, link, options)) {
  if (has_server(config())) {
    server_.emplace(world, ServerClient::Options{.servers = link.view().nodes(Role::server),
                                                 .wait_limit = from_seconds(config().wait_limit),
                                                 .arbiter = &link,
                                                 .compression = config().compress,
                                                 .compress_remote = config().compress_remote,
                                                 .takes_model = takes_model(options)});
  }
  share_memory(replica_, world.transport().shared_memory());
  device_ = known_device(world, replica_, options);
  progress_ = begin();
}

/// Only the worker that has read the checkpoint passes it on.
std::optional<wire::PacerMemory> WorkerSetup::pacer() const {
  const bool has_read = options_.rank == Rank{0} && !pacer_state_.counters.empty();
  return has_read ? std::optional(pacer_memory_in(pacer_state_)) : std::nullopt;
}

/// True if no worker's host has a spare core, and no worker emulates its device. All workers get
/// the same answer.
bool WorkerSetup::all_cores_taken() {
  const bool emulated = options_.plan.pacer(options_.rank).has_value();
  const std::uint8_t taken = !emulated && options_.cores > 0 && !has_spare_core() ? 1 : 0;
  std::vector<std::uint8_t> all(workers_.size());
  allgather(workers_, std::as_bytes(std::span(&taken, 1)), std::as_writable_bytes(std::span(all)));
  return std::find(all.begin(), all.end(), 0) == all.end();
}

/// True if this host has a core that no worker computes on.
bool WorkerSetup::has_spare_core() const {
  const std::vector<std::uint32_t>& hosts = workers_.hosts();
  const auto here = std::count(hosts.begin(), hosts.end(), hosts[workers_.rank().value]);
  return options_.cores > static_cast<std::uint64_t>(here) * config().threads;
}

TrainingProgress WorkerSetup::begin() {
  if (options_.plan.server_keeps_model()) {
    return begin_from_server();
  }
  const TrainingProgress start = begin_together();
  progress_ = start;
  if (!options_.shared_memory.empty()) {
    begin_in_shared_memory();
  }
  return start;
}

TrainingProgress WorkerSetup::begin_together() {
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

/// In a new job, the workers draw the model, and one of them uploads it to the server. In a resumed
/// job, the server already has the model.
TrainingProgress WorkerSetup::begin_from_server() {
  if (!options_.resume_from) {
    draw_initial_state(workers_, replica_, config());
    if (options_.rank == Rank{0}) {
      server_->upload(replica_.view(ReplicaVector::params), replica_.view(ReplicaVector::buffers));
    }
  }
  server_start_ =
      server_->start(replica_.view(ReplicaVector::params), replica_.view(ReplicaVector::buffers));
  replica_.store(ReplicaVector::params);
  replica_.store(ReplicaVector::buffers);
  return {.step = server_start_.steps,
          .round = server_start_.version,
          .samples = server_start_.samples,
          .training = server_start_.training};
}

void WorkerSetup::begin_in_shared_memory() {
  shared_.emplace(options_.shared_memory,
                  SharedModel::Size{.params = values(ReplicaVector::params),
                                    .buffers = values(ReplicaVector::buffers),
                                    .workers = config().workers});
  const auto resumed = loop();
  shared_->store_position(
      options_.rank, {.step = progress_.step,
                      .data = resumed ? resumed->position : DataPosition{.batch = progress_.step}});
  if (options_.rank == Rank{0}) {
    shared_->load(replica_.view(ReplicaVector::params),
                  {.updates = progress_.round, .samples = progress_.samples});
  }
}

Averaging::Options WorkerSetup::averaging() {
  const std::uint64_t to_do = options_.plan.samples_to_train(options_.dataset.train.samples());
  return {.weights = config().weights.value(),
          .data_share = options_.plan.data_share(options_.dataset.train, options_.rank),
          .reducer = config().scheme_options[option::aggregate].reducer,
          .compression = config().compress,
          .compress_remote = config().compress_remote,
          .of_program = replica_.allreduce_of_program(),
          .buffers = replica_.view(ReplicaVector::buffers),
          .server = server_ ? &*server_ : nullptr,
          .samples_to_do = to_do - std::min(to_do, progress_.samples)};
}

std::unique_ptr<Scheme> WorkerSetup::make_scheme() {
  const auto per_epoch = static_cast<double>(options_.dataset.train.samples());
  const std::vector<std::uint32_t> batch_sizes = options_.plan.batch_sizes();
  return scheme_named(config().scheme)
      .make({.options = config().scheme_options,
             .workers = workers_,
             .server = server_ ? &*server_ : nullptr,
             .server_start = server_start_,
             .shared = shared_ ? &*shared_ : nullptr,
             .pacer = &pacer_,
             .replica = &replica_,
             .averaging = averaging(),
             .weight = options_.plan.push_weight(),
             .momentum = optimizer_spec(config().optimizer).reads_momentum ? config().momentum : 0,
             .nesterov = optimizer_spec(config().optimizer).looks_ahead,
             .batch_size = batch_sizes[options_.rank.value],
             .least_part = options_.plan.least_part(),
             .batch_sizes = batch_sizes,
             .max_batch_sizes = max_batch_sizes_of(config(), batch_sizes.size()),
             // A model with buffers has BatchNorm, which needs two samples for a variance.
             .least_step = values(ReplicaVector::buffers) > 0 ? 2U : 1U,
             .done = Round{progress_.round},
             .samples_done = progress_.samples,
             .outer_state = outer_state_,
             .learning_rate =
                 [schedule = schedule_of(config()), per_epoch](std::uint64_t done) {
                   return schedule.rate(static_cast<double>(done) / per_epoch);
                 },
             .spare_core = has_spare_core(),
             .all_cores_taken = [this] { return all_cores_taken(); }});
}

}  // namespace syncopate
