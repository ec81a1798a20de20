#include "scheme/averaging.hpp"

#include <algorithm>
#include <utility>

namespace syncopate {
namespace {

constexpr const char* compression_state = "compression";

/// A reducer that takes the memory of accelerators gets whole vectors.
std::optional<Group> bucket_group_of(const Group& group, const Averaging::Options& options) {
  const bool takes_others = options.reducer != nullptr && options.reducer->takes != nullptr;
  const bool in_buckets = options.buckets && !options.server && !group.failures() && !takes_others;
  return in_buckets ? std::optional(group.duplicate()) : std::nullopt;
}

/// Sets a flag when its scope ends, also by an exception.
class CompletionFlag {
 public:
  explicit CompletionFlag(std::atomic<bool>& finished) : finished_(finished) {}
  ~CompletionFlag() { finished_ = true; }
  CompletionFlag(const CompletionFlag&) = delete;
  CompletionFlag& operator=(const CompletionFlag&) = delete;

 private:
  std::atomic<bool>& finished_;
};

}  // namespace

Averaging::Averaging(Group& group, const Options& options)
    : group_(group),
      options_(options),
      bucket_group_(bucket_group_of(group, options)),
      allreduce_(bucket_group_ ? *bucket_group_ : group,
                 {.requested = options.reducer,
                  .compression = options.compression,
                  .compress_remote = options.compress_remote,
                  .momentum = options.momentum}),
      buffers_of_all_(options.buffers) {
  if (group.failures() && !options.server) {
    recovery_.emplace(group);
  }
  if (options.server) {
    reduction_ = reduction_by_server(*options.server, allreduce_);
  } else if (bucket_group_) {
    BucketReducer::Options buckets = *options.buckets;
    buckets.wait_limit = [this] { return group_.waits().limit(); };
    reduction_ = std::make_unique<BucketReducer>(*bucket_group_, allreduce_, buckets);
  } else {
    reduction_ = whole_reduction(allreduce_);
  }
}

double Averaging::weight_of(std::uint64_t samples) const {
  if (samples == 0) {
    return 0;
  }
  switch (options_.weights) {
    case Weights::samples: return static_cast<double>(samples);
    case Weights::uniform: return 1;
    case Weights::data: return options_.data_share;
  }
  return 1;
}

GradientSink* Averaging::begin(std::uint64_t samples, std::span<float> gradient) {
  return reduction_->begin(weight_of(samples), gradient);
}

Values Averaging::vector_of(Replica& replica, ReplicaVector which) const {
  const Values where_it_is = replica.values(which);
  const bool stays = !recovery_ && reduction_->takes(where_it_is);
  return stays ? where_it_is : Values(replica.view(which));
}

Averaging::Result Averaging::synchronize(Round round, const StepInfo& info,
                                         const SyncValues& values) {
  Result result =
      recovery_ ? average_with_recovery(round, info, values) : average_once(round, info, values);
  samples_done_ += result.round_info.sync_round.samples;
  return result;
}

/// Repeats the round until it ends in the current group. After a failure the remaining workers
/// first agree whether one of them already has the round's result; they repeat the round only if
/// none has it.
Averaging::Result Averaging::average_with_recovery(Round round, const StepInfo& info,
                                                   const SyncValues& values) {
  const Clock& clock = group_.world();
  const TimePoint begun = clock.now();
  Result result;
  const auto attempt = [&] {
    const TimePoint agreeing = clock.now();
    if (const auto sync_round = recovery_->agree(values)) {
      result = {.round_info = {.infos = {}, .sync_round = *sync_round}};
      result.communicated = clock.now() - agreeing;
      buffers_of_all_.forget();
    } else {
      result = average_once(round, info, values);
    }
  };
  recovery_->begin(round, info.gradients.tensors(), values);
  bool broke = false;
  while (!recovery_->run_or_regroup(attempt)) {
    broke = true;
  }
  if (broke) {
    result.round_info.waited = clock.now() - begun - result.communicated;
  }
  recovery_->keep(result.round_info.sync_round, values);
  allreduce_.commit();
  return result;
}

Averaging::Result Averaging::average_once(Round round, const StepInfo& info,
                                          const SyncValues& values) {
  const Clock& clock = group_.world();
  StepInfo mine = info;
  mine.weight = weight_of(info.samples);
  mine.has_buffers = buffers_of_all_.has_last();
  RoundInfo round_info = begin_round(round, mine);
  const TimePoint opened = clock.now();
  const Duration preparing = reduce(round_info, mine, values);
  round_info.waited += preparing;
  return {.round_info = std::move(round_info), .communicated = clock.now() - opened - preparing};
}

/// Exchanges step infos, and agrees to stop once the job's samples are done.
RoundInfo Averaging::begin_round(Round round, const StepInfo& mine) {
  RoundInfo round_info = exchange_step_info(group_, mine);
  SyncRound& sync_round = round_info.sync_round;
  sync_round.round = round;
  const std::uint64_t done = samples_done_ + sync_round.samples;
  const std::uint64_t coming = options_.ahead ? sync_round.samples : 0;
  sync_round.agreed.stop |= done + coming >= options_.samples_to_do;
  return round_info;
}

/// Returns the time that does not count as communication.
Duration Averaging::reduce(const RoundInfo& round_info, const StepInfo& mine,
                           const SyncValues& values) {
  const double total = total_weight(round_info.infos);
  if (total == 0) {
    // Without samples the values carry no information. A codec's residual stays for a later round.
    reduction_->skip();
    return Duration::zero();
  }
  const bool all_have_last = std::ranges::all_of(round_info.infos, &StepInfo::has_buffers);
  buffers_of_all_.begin(values.buffers, all_have_last);
  const Duration preparing = reduction_->reduce(
      {.values = values,
       .of_model = weight_of_change(round_info.infos, mine),
       .weight = mine.weight,
       .total = total,
       .facts = {.step = round_info.sync_round.round.value, .samples = mine.samples}});
  buffers_of_all_.end(values.buffers, all_have_last);
  return preparing;
}

std::map<std::string, OptimizerState> Averaging::worker_states() const {
  const CompressedAllreduce* const compressed = allreduce_.compressed();
  if (!compressed) {
    return {};
  }
  CompressedAllreduce::Memory memory = compressed->memory();
  return {{compression_state,
           {.slots = {{"residual", std::move(memory.residual)},
                      {"own_velocity", std::move(memory.own_velocity)},
                      {"velocity_of_all", std::move(memory.velocity_of_all)}},
            .counters = {}}}};
}

void Averaging::load_worker_states(const std::map<std::string, OptimizerState>& states) {
  CompressedAllreduce* const compressed = allreduce_.compressed();
  const auto found = states.find(compression_state);
  if (!compressed || found == states.end()) {
    return;
  }
  const auto slot = [&](const char* name) {
    const auto values = found->second.slots.find(name);
    return values == found->second.slots.end() ? std::vector<float>() : values->second;
  };
  compressed->load({.residual = slot("residual"),
                    .own_velocity = slot("own_velocity"),
                    .velocity_of_all = slot("velocity_of_all")});
}

void Averaging::agree_after_failures() {
  if (recovery_) {
    recovery_->agree_after_failures();
  }
}

void Averaging::leave() {
  if (recovery_) {
    recovery_->linger();
  }
  if (options_.server) {
    options_.server->leave();
  }
}

void BackgroundAveraging::begin(Round round, const StepInfo& info, const SyncValues& values) {
  World& world = averaging_.group().world();
  finished_ = false;
  exchange_ = {.round = round, .begun = world.now()};
  task_ = world.spawn("averaging", [this, &world, round, info, values] {
    const CompletionFlag completion(finished_);
    result_ = averaging_.synchronize(round, info, values);
    exchange_.ended = world.now();
  });
}

Averaging::Result BackgroundAveraging::take() {
  const std::unique_ptr<Task> task = std::exchange(task_, nullptr);
  task->join();
  return *std::exchange(result_, std::nullopt);
}

}  // namespace syncopate
