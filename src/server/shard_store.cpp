#include "server/shard_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/errors.hpp"
#include "kernels/optimizer_steps.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {
namespace {

/// 64 KiB: the blocks of an update, of its gradient and of its answer fit the second-level cache.
constexpr std::size_t block_values = 16 * 1024;
/// From here on a loop over all parameters takes longer than it takes to wake a thread.
constexpr std::size_t worth_a_pool = 512 * 1024;

std::span<float> block_of(std::span<float> values, std::size_t first, std::size_t count) {
  return values.subspan(first, count);
}

void copy(std::span<const float> from, std::span<float> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

std::int64_t counter(const OptimizerState& state, const std::string& name) {
  const auto found = state.counters.find(name);
  if (found == state.counters.end()) {
    throw DataError(
        fmt::format("the state of a server lacks {}; was it written by this job?", name));
  }
  return found->second;
}

const std::vector<float>& slot(const OptimizerState& state, const std::string& name,
                               std::size_t values) {
  const auto found = state.slots.find(name);
  if (found == state.slots.end() || found->second.size() != values) {
    throw DataError(fmt::format("the state of a server has {} values of {}; expected {}",
                                found == state.slots.end() ? 0 : found->second.size(), name,
                                values));
  }
  return found->second;
}

/// The entries under `prefix`, without it.
OptimizerState under(const OptimizerState& state, const std::string& prefix) {
  OptimizerState found;
  for (const auto& [name, values] : state.slots) {
    if (name.starts_with(prefix)) {
      found.slots[name.substr(prefix.size())] = values;
    }
  }
  for (const auto& [name, value] : state.counters) {
    if (name.starts_with(prefix)) {
      found.counters[name.substr(prefix.size())] = value;
    }
  }
  return found;
}

void put_under(OptimizerState& state, const std::string& prefix, const OptimizerState& part) {
  for (const auto& [name, values] : part.slots) {
    state.slots[prefix + name] = values;
  }
  for (const auto& [name, value] : part.counters) {
    state.counters[prefix + name] = value;
  }
}

std::string worker_prefix(std::size_t rank) {
  return fmt::format("worker.{}.", rank);
}

constexpr const char* rule_prefix = "rule.";
constexpr const char* compensation_prefix = "compensation.";
/// Losses are kept as counts of this fraction, since a state's counters are whole.
constexpr double loss_unit = 1e-6;

}  // namespace

ShardStore::ShardStore(const Options& options)
    : params_(options.params),
      rule_(make_update_rule(options.rule, options.params)),
      learning_rate_(options.learning_rate),
      desks_(options.workers),
      samples_to_train_(options.samples_to_train),
      pool_(options.params >= worth_a_pool ? options.hands : 1) {
  if (options.compensation) {
    compensation_.emplace(*options.compensation, options.params);
  }
  for (Desk& desk : desks_) {
    desk.own_in.resize(options.params);
    desk.own_out.resize(options.params);
    desk.in = desk.own_in;
    desk.out = desk.own_out;
    desk.buffers.resize(options.buffers);
  }
}

/// Calls `visit(first, count)` for each block of the parameters, on all hands.
void ShardStore::for_each_block(const std::function<void(std::size_t, std::size_t)>& visit) {
  const std::size_t blocks = (params_.size() + block_values - 1) / block_values;
  pool_.run(blocks, [&](std::size_t block) {
    const std::size_t first = block * block_values;
    visit(first, std::min(block_values, params_.size() - first));
  });
}

void ShardStore::load(std::span<const float> params, std::span<const float> buffers) {
  copy(params, params_);
  for (Desk& desk : desks_) {
    copy(buffers, desk.buffers);
  }
  has_model_ = true;
}

void ShardStore::apply(Rank worker, bool answer) {
  Desk& desk = desks_[worker.value];
  if (drops(desk) || desk.facts.samples == 0) {
    if (answer) {
      read(worker);
    }
    return;
  }
  rule_->begin_step(learning_rate_(samples_));
  for_each_block([&](std::size_t first, std::size_t count) {
    const auto gradient = block_of(desk.in, first, count);
    const auto params = block_of(params_, first, count);
    const auto out = block_of(desk.out, first, count);
    if (compensation_) {
      compensation_->apply(first, gradient, params, out);
    }
    rule_->apply(first, params, gradient, desk.facts.weight);
    if (answer) {
      copy(params, out);
    }
  });
  count(desk);
  if (answer) {
    sent(desk);
  }
}

void ShardStore::apply_mean(std::span<const Rank> workers) {
  if (is_complete()) {
    ++version_;  // the step is closed, so that nobody waits for it
    return;
  }
  double weight = 0;
  for (const Rank worker : workers) {
    const PushFacts& facts = desks_[worker.value].facts;
    weight += facts.samples > 0 ? double{facts.weight} : 0;
  }
  if (weight > 0) {
    step_with_mean(workers, weight);
  }
  for (const Rank worker : workers) {
    Desk& desk = desks_[worker.value];
    desk.staleness = version_ - desk.read_version;
    samples_ += desk.facts.samples;
    loss_sum_ += desk.facts.loss_sum;
  }
  ++version_;
}

void ShardStore::step_with_mean(std::span<const Rank> workers, double total_weight) {
  rule_->begin_step(learning_rate_(samples_));
  for_each_block([&](std::size_t first, std::size_t count) {
    std::array<float, block_values> sum{};
    const std::span<float> mean = std::span(sum).first(count);
    for (const Rank worker : workers) {
      const Desk& desk = desks_[worker.value];
      if (desk.facts.samples > 0) {
        add_scaled(mean, desk.facts.weight, block_of(desk.in, first, count));
      }
    }
    rule_->apply(first, block_of(params_, first, count), mean,
                 1.0F / static_cast<float>(total_weight));
  });
}

void ShardStore::exchange(Rank worker, float rate) {
  Desk& desk = desks_[worker.value];
  if (drops(desk)) {
    read(worker);
    return;
  }
  for_each_block([&](std::size_t first, std::size_t count) {
    const auto replica = block_of(desk.in, first, count);
    elastic_exchange(replica, block_of(params_, first, count), rate);
    copy(replica, block_of(desk.out, first, count));
  });
  count(desk);
  sent(desk);
}

void ShardStore::sum() {
  for_each_block([&](std::size_t first, std::size_t count) {
    std::array<float, block_values> sum{};
    const std::span<float> total = std::span(sum).first(count);
    for (const Desk& desk : desks_) {
      if (desk.facts.weight != 0) {
        add_scaled(total, desk.facts.weight, block_of(desk.in, first, count));
      }
    }
    for (Desk& desk : desks_) {
      copy(total, block_of(desk.out, first, count));
    }
  });
  ++version_;
}

void ShardStore::read(Rank worker) {
  Desk& desk = desks_[worker.value];
  for_each_block([&](std::size_t first, std::size_t count) {
    copy(block_of(params_, first, count), block_of(desk.out, first, count));
  });
  sent(desk);
}

void ShardStore::take_facts(Rank worker, const PushFacts& facts) {
  Desk& desk = desks_[worker.value];
  desk.facts = facts;
  desk.gathered += facts.samples;
}

std::vector<float> ShardStore::mean_buffers() const {
  double total = 0;
  for (const Desk& desk : desks_) {
    total += static_cast<double>(desk.gathered);
  }
  if (total == 0) {
    return desks_.front().buffers;
  }
  std::vector<float> mean(desks_.front().buffers.size());
  for (const Desk& desk : desks_) {
    if (desk.gathered > 0) {
      const auto share = static_cast<float>(static_cast<double>(desk.gathered) / total);
      add_scaled(mean, share, desk.buffers);
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
  state.rest.counters["loss"] = static_cast<std::int64_t>(loss_sum_ / loss_unit);
  for (std::size_t rank = 0; rank < desks_.size(); ++rank) {
    const Desk& desk = desks_[rank];
    const std::string prefix = worker_prefix(rank);
    state.rest.counters[prefix + "steps"] = static_cast<std::int64_t>(desk.steps);
    state.rest.counters[prefix + "samples"] = static_cast<std::int64_t>(desk.facts.samples);
    state.rest.counters[prefix + "gathered"] = static_cast<std::int64_t>(desk.gathered);
    state.rest.slots[prefix + "buffers"] = desk.buffers;
  }
  return state;
}

void ShardStore::restore(const ShardState& state) {
  if (state.params.size() != params_.size()) {
    throw DataError(fmt::format("the state of a server has {} parameters; expected {}",
                                state.params.size(), params_.size()));
  }
  params_ = state.params;
  rule_->load(under(state.rest, rule_prefix));
  if (compensation_) {
    compensation_->load(under(state.rest, compensation_prefix));
  }
  version_ = static_cast<std::uint64_t>(counter(state.rest, "version"));
  samples_ = static_cast<std::uint64_t>(counter(state.rest, "samples"));
  loss_sum_ = static_cast<double>(counter(state.rest, "loss")) * loss_unit;
  for (std::size_t rank = 0; rank < desks_.size(); ++rank) {
    Desk& desk = desks_[rank];
    const std::string prefix = worker_prefix(rank);
    desk.steps = static_cast<std::uint64_t>(counter(state.rest, prefix + "steps"));
    desk.facts.samples = static_cast<std::uint64_t>(counter(state.rest, prefix + "samples"));
    desk.gathered = static_cast<std::uint64_t>(counter(state.rest, prefix + "gathered"));
    desk.buffers = slot(state.rest, prefix + "buffers", desk.buffers.size());
  }
  has_model_ = true;
}

/// Whether what the worker pushed comes too late, which its answer then says.
bool ShardStore::drops(Desk& desk) {
  desk.dropped = is_complete();
  return desk.dropped;
}

void ShardStore::count(Desk& desk) {
  desk.staleness = version_ - desk.read_version;
  samples_ += desk.facts.samples;
  loss_sum_ += desk.facts.loss_sum;
  ++version_;
}

void ShardStore::sent(Desk& desk) {
  desk.read_version = version_;
}

}  // namespace syncopate
