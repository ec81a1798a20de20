#include "scheme/averaging.hpp"

#include <algorithm>
#include <utility>

#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

constexpr const char* compression_state = "compression";

/// A reducer that takes the memory of accelerators gets whole vectors.
std::optional<Group> bucket_group_of(const Group& group, const Averaging::Options& options) {
  const bool takes_others = options.reducer != nullptr && options.reducer->takes != nullptr;
  const bool in_buckets = options.buckets && !options.server && !group.failures() && !takes_others;
  return in_buckets ? std::optional(group.duplicate()) : std::nullopt;
}

/// Every worker has the buffers after the last round.
bool all_have_last_buffers(const std::vector<StepInfo>& infos) {
  const auto last = [](const StepInfo& info) {
    return info.attendance ? info.attendance->last : 0;
  };
  return std::ranges::all_of(infos, [&](const StepInfo& info) {
    return info.has_buffers && last(info) == last(infos.front());
  });
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
                  .momentum = options.momentum,
                  .of_program = options.of_program}),
      buffers_of_all_(options.buffers) {
  if (options.periods) {
    book_.emplace(1 + group.rank_in_job(Rank{group.size() - 1}).value);
  }
  if (group.failures() && !options.server) {
    recovery_.emplace(group, book_ ? book_->packed_bytes() : 0);
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
                                         const SyncValues& values, std::uint32_t period) {
  StepInfo mine = info;
  if (book_) {
    mine.attendance = book_->attendance(period);
  }
  Result result = recovery_ ? average_with_recovery(round, mine, values, period)
                            : average_once(round, mine, values);
  if (!recovery_) {
    complete(result.round_info);
  }
  samples_done_ += result.round_info.sync_round.samples;
  return result;
}

Averaging::Part::Part(Group members, const Allreduce::Options& options)
    : group(std::move(members)), allreduce(group, options), reduction(whole_reduction(allreduce)) {}

Averaging::Members Averaging::members_of(Round round) {
  std::vector<Rank> ranks;
  for (Rank rank{0}; rank.value < group_.size(); ++rank.value) {
    if (!book_ || book_->has(round, group_.rank_in_job(rank))) {
      ranks.push_back(rank);
    }
  }
  if (ranks.size() == group_.size()) {
    return {.group = group_, .reduction = *reduction_};
  }
  if (std::exchange(parts_in_, group_.generation()) != group_.generation()) {
    parts_.clear();
  }
  auto found = parts_.find(ranks);
  if (found == parts_.end()) {
    found = parts_
                .try_emplace(ranks, group_.subgroup(ranks),
                             Allreduce::Options{.requested = options_.reducer})
                .first;
  }
  Part& part = found->second;
  if (recovery_) {
    part.group.waits().allow(recovery_->limit());
  }
  return {.group = part.group, .reduction = *part.reduction, .all = false};
}

/// Repeats the round until it ends in the current group. After a failure the remaining workers
/// first agree whether one of them already has the round's result; they repeat the round only if
/// none has it.
Averaging::Result Averaging::average_with_recovery(Round round, const StepInfo& info,
                                                   const SyncValues& values, std::uint32_t period) {
  const Clock& clock = group_.world();
  const TimePoint begun = clock.now();
  Result result;
  const auto attempt = [&] {
    const TimePoint agreeing = clock.now();
    if (const auto finished = recovery_->agree(values)) {
      result = finished_by_another(*finished);
      result.communicated = clock.now() - agreeing;
    } else {
      result = average_once(round, info, values);
      complete(result.round_info);
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
  recovery_->keep({.sync_round = result.round_info.sync_round,
                   .note = book_ ? book_->packed() : std::vector<std::byte>()},
                  values, period);
  allreduce_.commit();
  return result;
}

Averaging::Result Averaging::finished_by_another(const Recovery::Finished& finished) {
  Result result{.round_info = {.infos = {}, .sync_round = finished.sync_round},
                .has_mean = finished.sync_round.samples > 0};
  buffers_of_all_.forget();
  if (book_) {
    const Attendance before = book_->attendance(1);
    result.newest = book_->load(finished.note) ? Newest::known : Newest::unknown;
    const Attendance after = book_->attendance(1);
    // The other worker counts from its own last round.
    result.round_info.sync_round.samples = after.samples - before.samples;
    result.round_info.sync_round.loss_sum = after.loss_sum - before.loss_sum;
    result.round_info.sync_round.paused = after.paused - before.paused;
  }
  return result;
}

/// Books a round once it is complete on this worker: one that breaks is repeated as it began.
void Averaging::complete(const RoundInfo& round_info) {
  if (!book_) {
    return;
  }
  const Members members = members_of(round_info.sync_round.round);
  std::vector<Rank> ranks;
  for (std::uint32_t rank = 0; rank < members.group.size(); ++rank) {
    ranks.push_back(members.group.rank_in_job(Rank{rank}));
  }
  book_->complete(round_info.sync_round, ranks, round_info.infos, members.all);
}

Averaging::Result Averaging::average_once(Round round, const StepInfo& info,
                                          const SyncValues& values) {
  const Clock& clock = group_.world();
  StepInfo mine = info;
  mine.weight = weight_of(values.samples.value_or(info.samples));
  mine.has_buffers = buffers_of_all_.has_last();
  const Members members = members_of(round);
  RoundInfo round_info = begin_round(members, round, mine);
  const TimePoint opened = clock.now();
  const Duration preparing = reduce(members, round_info, values);
  const Newest newest = book_ ? hand_over_newest(members, round_info, values) : Newest::known;
  round_info.waited += preparing;
  const bool has_mean = total_weight(round_info.infos) > 0;
  return {.round_info = std::move(round_info),
          .communicated = clock.now() - opened - preparing,
          .newest = newest,
          .has_mean = has_mean};
}

/// Exchanges step infos, and agrees to stop once the job's samples are done.
RoundInfo Averaging::begin_round(const Members& members, Round round, const StepInfo& mine) {
  RoundInfo round_info = exchange_step_info(members.group, mine);
  SyncRound& sync_round = round_info.sync_round;
  sync_round.round = round;
  if (book_) {
    add_missed_rounds(sync_round, round_info.infos, mine);
    weigh_missed_rounds(round_info.infos);
  }
  const std::uint64_t done =  // the same on every worker of the round
      book_ ? samples_with(round_info.infos) : samples_done_ + sync_round.samples;
  const std::uint64_t coming = options_.ahead ? sync_round.samples : 0;
  sync_round.agreed.stop |= done + coming >= options_.samples_to_do;
  if (!members.all) {
    sync_round.agreed = {.evaluate = sync_round.agreed.evaluate};
    sync_round.elsewhere.reset();
  }
  return round_info;
}

/// A worker that has been in all rounds sends the model to those that have missed some.
Averaging::Newest Averaging::hand_over_newest(const Members& members, const RoundInfo& round_info,
                                              const SyncValues& values) {
  const std::uint64_t latest = latest_round(round_info.infos);
  const auto missed = [&](Rank rank) {
    return has_missed_rounds(round_info.infos[rank.value], latest);
  };
  std::vector<Rank> ranks;  // the source, and those that have missed rounds
  std::optional<Rank> source;
  for (Rank rank{0}; rank.value < members.group.size(); ++rank.value) {
    const bool is_source = !source && !missed(rank);
    if (is_source) {
      source = Rank{static_cast<std::uint32_t>(ranks.size())};
    }
    if (is_source || missed(rank)) {
      ranks.push_back(rank);
    }
  }
  const Rank self = members.group.rank();
  if (ranks.size() == 1 || std::ranges::find(ranks, self) == ranks.end()) {
    return Newest::known;
  }
  Group group = members.group.subgroup(ranks);
  const NewestModel& model = values.newest;
  broadcast(group, std::as_writable_bytes(missed(self) ? model.received : model.own), *source);
  broadcast(group, model.state, *source);
  return missed(self) ? Newest::received : Newest::known;
}

/// Returns the time that does not count as communication.
Duration Averaging::reduce(const Members& members, const RoundInfo& round_info,
                           const SyncValues& values) {
  const StepInfo& mine = round_info.infos[members.group.rank().value];
  const double total = total_weight(round_info.infos);
  if (total == 0) {
    // Without samples the values carry no information. A codec's residual stays for a later round.
    members.reduction.skip();
    return Duration::zero();
  }
  const bool all_have_last = all_have_last_buffers(round_info.infos);
  buffers_of_all_.begin(values.buffers, all_have_last);
  const Duration preparing = members.reduction.reduce(
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

void Averaging::restart(Round last, const std::vector<std::uint32_t>& periods) {
  allreduce_.forget_links();
  for (auto& [ranks, part] : parts_) {
    part.allreduce.forget_links();
  }
  if (book_) {
    book_->restart(last, periods);
  }
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

void BackgroundAveraging::begin(Round round, const StepInfo& info, const SyncValues& values,
                                std::uint32_t period) {
  World& world = averaging_.group().world();
  finished_ = false;
  exchange_ = {.round = round, .begun = world.now()};
  task_ = world.spawn("averaging", [this, &world, round, info, values, period] {
    const CompletionFlag completion(finished_);
    result_ = averaging_.synchronize(round, info, values, period);
    exchange_.ended = world.now();
  });
}

Averaging::Result BackgroundAveraging::take() {
  const std::unique_ptr<Task> task = std::exchange(task_, nullptr);
  task->join();
  return *std::exchange(result_, std::nullopt);
}

}  // namespace syncopate
