#include "collective/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "collective/binary_blocks.hpp"
#include "collective/measure_links.hpp"
#include "collective/ring_allreduce.hpp"
#include "collective/tree_allreduce.hpp"
#include "kernels/reduce.hpp"
#include "transport/transport.hpp"

namespace syncopate {
namespace {

/// Returns all other ranks as missing: the library below the transport does not report which of
/// them are late.
std::vector<Rank> others_of(const Group& group) {
  std::vector<Rank> others;
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    if (Rank{rank} != group.rank()) {
      others.push_back(group.rank_in_job(Rank{rank}));
    }
  }
  return others;
}

NativeAllreduce& native_of(Group& group) {
  NativeAllreduce* const native = group.transport().native_allreduce();
  if (native == nullptr) {
    throw ConfigError("--aggregate mpi requires --transport mpi; choose another aggregate or auto");
  }
  if (native->size() != group.size()) {
    throw ConfigError(
        fmt::format("--aggregate mpi requires every MPI rank to be a worker ({} ranks, {} "
                    "workers); choose another aggregate or auto",
                    native->size(), group.size()));
  }
  return *native;
}

void native_allreduce(Group& group, std::span<float> values, float factor) {
  scale(values, factor);
  NativeAllreduce& native = native_of(group);
  group.await([&](TimePoint until) { native.allreduce(values, until); },
              {.operation = "allreduce", .missing = [&] { return others_of(group); }});
}

/// `among_leaders` reduces among the host leaders, the upper of two levels.
void reduce_by(Algorithm algorithm, Group& group, std::span<float> values, float factor,
               const std::function<void(Group&, std::span<float>)>& among_leaders = {}) {
  switch (algorithm) {
    case Algorithm::ring: ring_allreduce(group, values, factor); return;
    case Algorithm::butterfly: butterfly_allreduce(group, values, factor); return;
    case Algorithm::binary_blocks: binary_blocks_allreduce(group, values, factor); return;
    case Algorithm::tree: tree_allreduce(group, values, factor); return;
    case Algorithm::two_level: two_level_allreduce(group, values, factor, among_leaders); return;
    case Algorithm::mpi: native_allreduce(group, values, factor); return;
    case Algorithm::shm:
    case Algorithm::automatic: break;
  }
  throw InternalError("an allreduce without a chosen algorithm");
}

/// A rank of weight 0 contributes zeros, whatever its values are. Returns the rank's factor.
float weigh(std::span<float> values, double weight, double total_weight) {
  if (weight == 0) {
    std::fill(values.begin(), values.end(), 0.0F);
    return 1;
  }
  return static_cast<float>(weight / total_weight);
}

}  // namespace

Allreduce::Allreduce(Group& group, const Options& options)
    : group_(group),
      plan_options_{.algorithm = options.algorithm,
                    .compression = options.compression,
                    .compress_remote = options.compress_remote},
      plan_(plan_options_, group.hosts()),
      planned_in_(group.generation()) {
  if (options.compression) {
    using Commits = CompressedAllreduce::Commits;
    compressed_.emplace(options.compression,
                        group.failures() ? Commits::deferred : Commits::immediate,
                        options.momentum);
  }
}

void Allreduce::reduce(std::span<float> values) {
  run(values, 1);
}

void Allreduce::weighted_mean(std::span<float> values, double weight, double total_weight) {
  if (group_.size() > 1) {
    run(values, weigh(values, weight, total_weight));
  }
}

void Allreduce::compressed_mean(std::span<float> values, std::size_t first, double weight,
                                double total_weight) {
  if (!compresses() || values.empty()) {
    weighted_mean(values, weight, total_weight);
    return;
  }
  const float factor = weigh(values, weight, total_weight);
  if (plan().compresses_among_leaders()) {
    two_level_allreduce(group_, values, factor, [&](Group& leaders, std::span<float> slice) {
      const auto offset = static_cast<std::size_t>(slice.data() - values.data());
      compressed_->run(leaders, slice, 1, first + offset);
    });
  } else {
    compressed_->run(group_, values, factor, first);
  }
  const MutexLock lock(mutex_);
  compression_stats_ = compressed_->stats();
}

void Allreduce::commit() {
  if (compressed_) {
    compressed_->commit();
  }
}

CompressionStats Allreduce::compression() const {
  const MutexLock lock(mutex_);
  return compression_stats_;
}

void Allreduce::prepare(std::size_t values) {
  if (!compresses() || values == 0) {
    pick(values);
    return;
  }
  const std::size_t bytes = values * sizeof(float);
  measure(bytes);
  if (is_longest(bytes)) {
    describe(bytes, plan().describe_compressed(bytes));
  }
}

void Allreduce::run(std::span<float> values, float factor) {
  if (group_.size() == 1 || values.empty()) {
    scale(values, factor);
    return;
  }
  const Algorithm algorithm = pick(values.size());
  if (algorithm == Algorithm::shm) {
    shared_->run(values, factor);
    return;
  }
  reduce_by(algorithm, group_, values, factor, [this](Group& leaders, std::span<float> slice) {
    if (leaders.size() > 1) {
      reduce_by(plan_.algorithm_among_leaders(slice.size_bytes()), leaders, slice, 1);
    }
  });
}

Algorithm Allreduce::pick(std::size_t values) {
  const std::size_t bytes = values * sizeof(float);
  if (group_.size() == 1 || values == 0) {
    return plan().algorithm(bytes);
  }
  share_memory();
  if (plan().wants_links()) {
    measure(bytes);
  }
  const Algorithm picked = plan().algorithm(bytes);
  if (is_longest(bytes)) {
    describe(bytes, plan().describe(picked, bytes));
  }
  return picked;
}

AllreduceCost Allreduce::cost(std::size_t values) {
  prepare(values);
  return plan().cost(values * sizeof(float));
}

AllreducePlan& Allreduce::plan() {
  if (planned_in_ != group_.generation()) {
    plan_ = AllreducePlan(plan_options_, group_.hosts());
    planned_in_ = group_.generation();
  }
  return plan_;
}

void Allreduce::share_memory() {
  if (plan().wants_shared_memory() && sharing_since_ != group_.generation()) {
    sharing_since_ = group_.generation();
    shared_ = SharedAllreduce::make(group_);
    plan().set_shared_memory(shared_ != nullptr);
  }
}

/// All ranks measure the same number of times: if a measurement fails on some of them, all get a
/// new generation, and a new plan, before they try again.
void Allreduce::measure(std::size_t bytes) {
  if (const auto probe = plan().probe_bytes(bytes)) {
    plan().set_links(measure_links(group_, *probe), *probe);
  }
}

bool Allreduce::is_longest(std::size_t bytes) const {
  return bytes > described_bytes_ || described_in_ != group_.generation();
}

void Allreduce::describe(std::size_t bytes, std::string text) {
  described_bytes_ = bytes;
  described_in_ = group_.generation();
  const MutexLock lock(mutex_);
  description_ = std::move(text);
}

std::string Allreduce::description() const {
  const MutexLock lock(mutex_);
  return description_;
}

}  // namespace syncopate
