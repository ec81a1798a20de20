#include "collective/allreduce.hpp"

#include <algorithm>
#include <utility>

#include "collective/measure_links.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {
namespace {

/// What a rank of this weight contributes to a mean. One of weight 0 contributes zeros, whatever
/// its values are.
Contribution weighed(const Allreduce::Weighted& vector, double total_weight) {
  Contribution mine{.values = vector.values,
                    .factor = static_cast<float>(vector.weight / total_weight),
                    .first = vector.first};
  if (vector.weight == 0 && vector.values.are_host_floats()) {
    std::ranges::fill(vector.values.floats(), 0.0F);
    mine.factor = 1;
  }
  return mine;
}

/// Compresses what each rank sends to all others.
class CompressedReducer final : public Reducer {
 public:
  CompressedReducer(Group& group, CompressedAllreduce& compressed)
      : group_(group), compressed_(compressed) {}

  void reduce(const Contribution& mine) override {
    compressed_.run(group_, mine.values.floats(), mine.factor, mine.first);
  }

 private:
  Group& group_;
  CompressedAllreduce& compressed_;
};

}  // namespace

Allreduce::Allreduce(Group& group, const Options& options)
    : group_(group),
      plan_options_{.requested = options.requested,
                    .compression = options.compression,
                    .compress_remote = options.compress_remote},
      of_program_(options.of_program),
      planned_in_(group.generation()),
      plan_(plan_options_, group.hosts()) {
  if (options.compression) {
    using Commits = CompressedAllreduce::Commits;
    compressed_.emplace(options.compression,
                        group.failures() ? Commits::deferred : Commits::immediate,
                        options.momentum);
  }
}

void Allreduce::reduce(const Values& values) {
  run({.values = values});
}

Duration Allreduce::means(std::span<const Weighted> vectors, double total_weight) {
  if (group_.size() == 1) {
    return Duration::zero();
  }
  const TimePoint begun = group_.world().now();
  for (const Weighted& vector : vectors) {
    prepare(vector.values.size_bytes(), is_compressed(vector));
  }
  const Duration preparing = group_.world().now() - begun;
  for (const Weighted& vector : vectors) {
    const Contribution mine = weighed(vector, total_weight);
    if (!is_compressed(vector)) {
      run(mine);
      continue;
    }
    compressed_reducer().reduce(mine);
    const MutexLock lock(mutex_);
    compression_stats_ = compressed_->stats();
  }
  return preparing;
}

bool Allreduce::takes(const Values& values) const {
  const ReducerSpec* const requested = plan_options_.requested;
  return values.are_host_floats() ||
         (requested != nullptr && requested->takes && requested->takes(values));
}

bool Allreduce::is_compressed(const Weighted& vector) {
  return vector.may_lose && !vector.values.empty() && compresses();
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

void Allreduce::prepare(std::size_t bytes, bool compressed) {
  if (!compressed) {
    choose(bytes);
    return;
  }
  measure(bytes);
  if (is_longest(bytes)) {
    describe(bytes, plan().describe_compressed(bytes));
  }
}

void Allreduce::run(const Contribution& mine) {
  if (const ReducerSpec* const reducer = choose(mine.values.size_bytes())) {
    made(*reducer).reduce(mine);
  }
}

const ReducerSpec* Allreduce::pick(std::size_t values) {
  return choose(values * sizeof(float));
}

const ReducerSpec* Allreduce::choose(std::size_t bytes) {
  if (group_.size() == 1 || bytes == 0) {
    return nullptr;
  }
  share_memory();
  if (plan().wants_links()) {
    measure(bytes);
  }
  const ReducerSpec& chosen = plan().reducer(bytes);
  if (is_longest(bytes)) {
    describe(bytes, plan().describe(chosen, bytes));
  }
  return &chosen;
}

Reducer& Allreduce::made(const ReducerSpec& spec) {
  std::unique_ptr<Reducer>& reducer = made_[&spec];
  if (!reducer) {
    const auto among_leaders = [this](Group& leaders, const Contribution& mine) {
      if (leaders.size() > 1) {
        const ReducerSpec& among = plan_.reducer_among_leaders(mine.values.size_bytes());
        among.make(leaders, {.of_program = of_program_})->reduce(mine);
      }
    };
    reducer = spec.make(group_, {.among_leaders = among_leaders, .of_program = of_program_});
  }
  return *reducer;
}

Reducer& Allreduce::compressed_reducer() {
  if (!compressed_reducer_ && plan().compresses_among_leaders()) {
    compressed_reducer_ =
        find_reducer("two-level")
            ->make(group_, {.among_leaders = [this](Group& leaders, const Contribution& mine) {
                     CompressedReducer(leaders, *compressed_).reduce(mine);
                   }});
  } else if (!compressed_reducer_) {
    compressed_reducer_ = std::make_unique<CompressedReducer>(group_, *compressed_);
  }
  return *compressed_reducer_;
}

AllreduceCost Allreduce::cost(std::size_t values) {
  const std::size_t bytes = values * sizeof(float);
  prepare(bytes, compresses());
  return plan().cost(bytes);
}

AllreducePlan& Allreduce::plan() {
  if (planned_in_ != group_.generation()) {
    plan_ = AllreducePlan(plan_options_, group_.hosts());
    planned_in_ = group_.generation();
    made_.clear();
    compressed_reducer_.reset();
    tried_memory_ = false;
  }
  return plan_;
}

void Allreduce::share_memory() {
  if (plan().wants_shared_memory() && !std::exchange(tried_memory_, true)) {
    const ReducerSpec& in_memory = AllreducePlan::in_memory();
    std::unique_ptr<Reducer> reducer = in_memory.make(group_, {});
    plan().set_shared_memory(reducer != nullptr);
    if (reducer) {
      made_[&in_memory] = std::move(reducer);
    }
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
