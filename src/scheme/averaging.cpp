#include "scheme/averaging.hpp"

#include <utility>

namespace syncopate {

namespace {

constexpr const char* compression_state = "compression";

std::optional<Group> beside(const Group& group, const Averaging::Options& options) {
  const bool in_buckets = options.buckets && !options.server && !group.failures();
  return in_buckets ? std::optional(group.duplicate()) : std::nullopt;
}

}  // namespace

Averaging::Averaging(Group& group, const Options& options)
    : group_(group),
      options_(options),
      adding_(beside(group, options)),
      allreduce_(adding_ ? *adding_ : group, {.algorithm = options.algorithm,
                                              .compression = options.compression,
                                              .compress_remote = options.compress_remote,
                                              .momentum = options.momentum}) {
  if (group.failures() && !options.server) {
    recovery_.emplace(group);
  }
  if (adding_) {
    buckets_.emplace(*adding_, allreduce_, *options.buckets);
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

/// The reducing task also waits for the slowest backward pass, so it gets the same time limit as the exchange of step infos.
GradientSink* Averaging::begin(std::uint64_t samples, std::span<float> gradient) {
  if (!buckets_) {
    return nullptr;
  }
  adding_->waits().allow(group_.waits().limit());
  return buckets_->begin(weight_of(samples), gradient);
}

Averaging::Result Averaging::meet(Round round, const StepInfo& info, const Values& values) {
  Result result =
      recovery_ ? meet_with_those_left(round, info, values) : attempt(round, info, values);
  samples_done_ += result.table.meeting.samples;
  return result;
}

Averaging::Result Averaging::meet_with_those_left(Round round, const StepInfo& info,
                                                  const Values& values) {
  const Clock& clock = group_.world();
  const TimePoint begun = clock.now();
  Result result;
  const auto once = [&] {
    const TimePoint settling = clock.now();
    if (const auto meeting = recovery_->settle(values)) {
      result = {.table = {.infos = {}, .meeting = *meeting}};
      result.communicated = clock.now() - settling;
    } else {
      result = attempt(round, info, values);
    }
  };
  recovery_->begin(round, values);
  bool whole = true;
  while (!recovery_->survives(once)) {
    whole = false;
  }
  if (!whole) {
    result.table.waited = clock.now() - begun - result.communicated;
  }
  recovery_->keep(result.table.meeting, values);
  allreduce_.commit();
  return result;
}

Averaging::Result Averaging::attempt(Round round, const StepInfo& info, const Values& values) {
  const Clock& clock = group_.world();
  StepInfo mine = info;
  mine.weight = weight_of(info.samples);
  RoundInfo table = exchange_step_info(group_, mine);
  table.meeting.round = round;
  const std::uint64_t done = samples_done_ + table.meeting.samples;
  const std::uint64_t coming = options_.ahead ? table.meeting.samples : 0;
  table.meeting.agreed.stop |= done + coming >= options_.samples_to_do;
  const TimePoint opened = clock.now();
  prepare(values.model.size());
  const TimePoint met = clock.now();
  table.waited += met - opened;
  const double total = total_weight(table.infos);
  const double of_change = weight_of_change(table.infos, mine);
  if (options_.server) {
    add_by_server(values.model, of_change == 0 ? 0 : static_cast<float>(of_change / total),
                  {.step = round.value, .samples = info.samples});
  } else if (buckets_) {
    buckets_->weighted_mean(values.model, of_change, total);
  } else {
    allreduce_.compressed_mean(values.model, 0, of_change, total);
  }
  allreduce_.weighted_mean(values.control, mine.weight, total);
  allreduce_.weighted_mean(values.buffers, mine.weight, total);
  return {.table = std::move(table), .communicated = clock.now() - met};
}

/// What is measured for it is no part of the time that sums take.
void Averaging::prepare(std::size_t values) {
  if (buckets_) {
    buckets_->settle(values);
  } else if (!options_.server) {
    allreduce_.prepare(values);
  }
}

/// The sum comes back to where the values were: a server answers when it has the whole of them.
void Averaging::add_by_server(std::span<float> values, float share, const PushFacts& facts) {
  ServerClient::Work work{.push = values, .pull = values, .facts = facts};
  work.facts.weight = share;
  options_.server->work(work);
}

std::string Averaging::aggregate() const {
  if (options_.server) {
    return "server";
  }
  return buckets_ ? buckets_->description() : allreduce_.description();
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

void Averaging::settle_losses() {
  if (recovery_) {
    recovery_->settle_losses();
  }
}

void Averaging::leave() {
  if (recovery_) {
    recovery_->stay();
  }
  if (options_.server) {
    options_.server->leave();
  }
}

}  // namespace syncopate
