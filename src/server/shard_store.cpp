#include "server/shard_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/errors.hpp"
#include "kernels/blocks.hpp"
#include "kernels/optimizer_steps.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {
namespace {

/// From this number of parameters on, a loop over them takes longer than it takes to wake a thread.
constexpr std::size_t worth_a_pool = 512 * 1024;

std::span<float> block_of(std::span<float> values, std::size_t first, std::size_t count) {
  return values.subspan(first, count);
}

void copy(std::span<const float> from, std::span<float> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

constexpr const char* rule_prefix = "rule.";
constexpr const char* compensation_prefix = "compensation.";
/// Losses are kept as counts of this fraction, since a state's counters are whole.
constexpr double loss_unit = 1e-6;

/// If training has diverged, the loss may be huge or no number: the counter then has its limit.
std::int64_t loss_units(double sum) {
  constexpr double limit = 9e18;
  return static_cast<std::int64_t>(std::isfinite(sum) ? std::clamp(sum / loss_unit, -limit, limit)
                                                      : limit);
}

}  // namespace

ShardStore::ShardStore(const Options& options)
    : params_(options.params),
      rule_(make_update_rule(options.rule, options.params)),
      learning_rate_(options.learning_rate),
      slots_(options.workers),
      max_delay_(options.max_delay),
      samples_to_train_(options.samples_to_train),
      pool_(options.params >= worth_a_pool ? options.threads : 1) {
  if (options.compensation) {
    compensation_.emplace(*options.compensation, options.params);
  }
  for (WorkerSlot& slot : slots_) {
    slot.own_in.resize(options.params);
    slot.own_out.resize(options.params);
    slot.in = slot.own_in;
    slot.out = slot.own_out;
    slot.buffers.resize(options.buffers);
  }
}

/// Calls `visit(first, count)` for each block of the parameters, on all threads.
void ShardStore::for_each_block(const std::function<void(std::size_t, std::size_t)>& visit) {
  const std::size_t blocks = (params_.size() + values_of_block - 1) / values_of_block;
  pool_.run(blocks, [&](std::size_t block) {
    const std::size_t first = block * values_of_block;
    visit(first, std::min(values_of_block, params_.size() - first));
  });
}

void ShardStore::load(std::span<const float> params, std::span<const float> buffers) {
  copy(params, params_);
  for (WorkerSlot& slot : slots_) {
    copy(buffers, slot.buffers);
  }
  has_model_ = true;
}

void ShardStore::apply(Rank worker, bool answer) {
  WorkerSlot& slot = slots_[worker.value];
  if (drops(slot) || slot.facts.samples == 0) {
    if (answer) {
      read(worker);
    }
    return;
  }
  rule_->begin_step(learning_rate_(samples_));
  for_each_block([&](std::size_t first, std::size_t count) {
    const auto gradient = block_of(slot.in, first, count);
    const auto params = block_of(params_, first, count);
    const auto out = block_of(slot.out, first, count);
    if (compensation_) {
      compensation_->apply(first, gradient, params, out);
    }
    rule_->apply(first, params, gradient, slot.facts.weight);
    if (answer) {
      copy(params, out);
    }
  });
  count_push(slot);
  ++version_;
  if (answer) {
    sent(slot);
  }
}

bool ShardStore::admit(Rank worker) {
  WorkerSlot& slot = slots_[worker.value];
  if (drops(slot) || slot.facts.samples == 0) {
    return false;
  }
  count_push(slot);
  return true;
}

void ShardStore::update(std::span<const float> gradient) {
  rule_->begin_step(learning_rate_(samples_));
  for_each_block([&](std::size_t first, std::size_t count) {
    rule_->apply(first, block_of(params_, first, count), gradient.subspan(first, count), 1.0F);
  });
  ++version_;
}

void ShardStore::apply_mean(std::span<const Rank> workers) {
  if (is_complete()) {
    ++version_;  // the step is closed, so that no worker waits for it
    return;
  }
  double weight = 0;
  for (const Rank worker : workers) {
    const PushFacts& facts = slots_[worker.value].facts;
    weight += facts.samples > 0 ? double{facts.weight} : 0;
  }
  if (weight > 0) {
    step_with_mean(workers, weight);
  }
  for (const Rank worker : workers) {
    WorkerSlot& slot = slots_[worker.value];
    slot.staleness = version_ - slot.read_version;
    samples_ += slot.facts.samples;
    loss_sum_ += slot.facts.loss_sum;
  }
  ++version_;
}

void ShardStore::step_with_mean(std::span<const Rank> workers, double total_weight) {
  rule_->begin_step(learning_rate_(samples_));
  for_each_block([&](std::size_t first, std::size_t count) {
    std::array<float, values_of_block> sum{};
    const std::span<float> mean = std::span(sum).first(count);
    for (const Rank worker : workers) {
      const WorkerSlot& slot = slots_[worker.value];
      if (slot.facts.samples > 0) {
        add_scaled(mean, slot.facts.weight, block_of(slot.in, first, count));
      }
    }
    rule_->apply(first, block_of(params_, first, count), mean,
                 1.0F / static_cast<float>(total_weight));
  });
}

void ShardStore::exchange(Rank worker, float rate) {
  WorkerSlot& slot = slots_[worker.value];
  if (drops(slot)) {
    read(worker);
    return;
  }
  for_each_block([&](std::size_t first, std::size_t count) {
    const auto replica = block_of(slot.in, first, count);
    elastic_exchange(replica, block_of(params_, first, count), rate);
    copy(replica, block_of(slot.out, first, count));
  });
  count_push(slot);
  ++version_;
  sent(slot);
}

void ShardStore::reduce() {
  for_each_block([&](std::size_t first, std::size_t count) {
    std::array<float, values_of_block> sum{};
    const std::span<float> total = std::span(sum).first(count);
    for (const WorkerSlot& slot : slots_) {
      if (slot.facts.weight != 0) {
        add_scaled(total, slot.facts.weight, block_of(slot.in, first, count));
      }
    }
    for (WorkerSlot& slot : slots_) {
      copy(total, block_of(slot.out, first, count));
    }
  });
  ++version_;
}

void ShardStore::read(Rank worker) {
  WorkerSlot& slot = slots_[worker.value];
  for_each_block([&](std::size_t first, std::size_t count) {
    copy(block_of(params_, first, count), block_of(slot.out, first, count));
  });
  sent(slot);
}

void ShardStore::record_push(Rank worker, const PushFacts& facts) {
  WorkerSlot& slot = slots_[worker.value];
  slot.facts = facts;
  slot.gathered += facts.samples;
}

std::vector<float> ShardStore::mean_buffers() const {
  double total = 0;
  for (const WorkerSlot& slot : slots_) {
    total += static_cast<double>(slot.gathered);
  }
  if (total == 0) {
    return slots_.front().buffers;
  }
  std::vector<float> mean(slots_.front().buffers.size());
  for (const WorkerSlot& slot : slots_) {
    if (slot.gathered > 0) {
      const auto share = static_cast<float>(static_cast<double>(slot.gathered) / total);
      add_scaled(mean, share, slot.buffers);
    }
  }
  return mean;
}

ShardState ShardStore::state() const {
  ShardState state{.params = params_, .buffers = mean_buffers(), .rest = {}};
  put_under(state.rest, rule_prefix, rule_->state());
  if (compensation_) {
    put_under(state.rest, compensation_prefix, compensation_->state());
  }
  state.rest.counters["version"] = static_cast<std::int64_t>(version_);
  state.rest.counters["samples"] = static_cast<std::int64_t>(samples_);
  state.rest.counters["loss"] = loss_units(loss_sum_);
  for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
    const WorkerSlot& slot = slots_[rank];
    const std::string prefix = worker_prefix(rank);
    state.rest.counters[prefix + "steps"] = static_cast<std::int64_t>(slot.steps);
    state.rest.counters[prefix + "samples"] = static_cast<std::int64_t>(slot.facts.samples);
    state.rest.counters[prefix + "gathered"] = static_cast<std::int64_t>(slot.gathered);
    state.rest.slots[prefix + "buffers"] = slot.buffers;
  }
  return state;
}

void ShardStore::restore(const ShardState& state) {
  if (state.params.size() != params_.size()) {
    throw DataError(fmt::format("the state of a server has {} parameters; expected {}",
                                state.params.size(), params_.size()));
  }
  params_ = state.params;
  rule_->load(entries_under(state.rest, rule_prefix));
  if (compensation_) {
    compensation_->load(entries_under(state.rest, compensation_prefix));
  }
  version_ = count_in(state.rest, "version");
  samples_ = count_in(state.rest, "samples");
  loss_sum_ = static_cast<double>(counter_in(state.rest, "loss")) * loss_unit;
  for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
    WorkerSlot& slot = slots_[rank];
    const std::string prefix = worker_prefix(rank);
    slot.steps = count_in(state.rest, prefix + "steps");
    slot.facts.samples = count_in(state.rest, prefix + "samples");
    slot.gathered = count_in(state.rest, prefix + "gathered");
    slot.buffers = values_in(state.rest, prefix + "buffers", slot.buffers.size());
  }
  has_model_ = true;
}

/// Returns true if the push arrived too late, and records that for the answer.
bool ShardStore::drops(WorkerSlot& slot) {
  const bool is_stale = max_delay_ && version_ - slot.read_version >= *max_delay_;
  slot.dropped = is_complete() || is_stale;
  return slot.dropped;
}

void ShardStore::count_push(WorkerSlot& slot) {
  slot.staleness = version_ - slot.read_version;
  samples_ += slot.facts.samples;
  loss_sum_ += slot.facts.loss_sum;
}

void ShardStore::sent(WorkerSlot& slot) {
  slot.read_version = version_;
}

}  // namespace syncopate
