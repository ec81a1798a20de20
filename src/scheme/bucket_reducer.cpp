#include "scheme/bucket_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

/// The shortest bucket: in a shorter one latency dominates.
constexpr double least_bytes = 1024 * 1024;

/// The values of all ranks, by rank.
template <class Value>
std::vector<Value> gather_from_all(Group& group, const Value& mine) {
  std::vector<Value> all(group.size());
  allgather(group, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

BucketTracker::BucketTracker(std::size_t values, std::size_t buckets) {
  std::size_t end = values;
  for (std::size_t left = buckets; left > 0; --left) {
    const std::size_t begin = values / buckets * (left - 1);
    buckets_.push_back({begin, end});
    end = begin;
  }
  begin();
}

void BucketTracker::begin() {
  missing_.clear();
  for (const Bucket& bucket : buckets_) {
    missing_.push_back(bucket.end - bucket.begin);
  }
  complete_ = 0;
}

void BucketTracker::mark_ready(std::size_t begin, std::size_t end) {
  for (std::size_t i = 0; i < size(); ++i) {
    const std::size_t first = std::max(begin, buckets_[i].begin);
    const std::size_t last = std::min(end, buckets_[i].end);
    const std::size_t values = first < last ? last - first : 0;
    if (values > missing_[i]) {
      throw InternalError(
          fmt::format("values {} to {} of a gradient were reported twice", first, last));
    }
    missing_[i] -= values;
  }
  while (complete_ < size() && missing_[complete_] == 0) {
    ++complete_;
  }
}

BucketReducer::BucketReducer(Group& group, Allreduce& allreduce, const Options& options)
    : group_(group),
      allreduce_(allreduce),
      options_(options),
      progressed_(group.world().make_event()) {}

BucketReducer::~BucketReducer() {
  {
    const MutexLock lock(mutex_);
    abandoned_ = true;
  }
  progressed_->notify();
}

GradientSink* BucketReducer::begin(double weight, std::span<float> gradient) {
  wants_overlap_ = options_.overlap;
  if (!overlaps_) {
    return nullptr;
  }
  if (options_.wait_limit) {
    group_.waits().allow(options_.wait_limit());
  }
  {
    const MutexLock lock(mutex_);
    tracker_->begin();
  }
  task_ = group_.world().spawn("buckets",
                               [this, pass = Pass{weight, gradient}] { reduce_buckets(pass); });
  return this;
}

void BucketReducer::ready(std::size_t begin, std::size_t end) {
  bool progressed = false;
  {
    const MutexLock lock(mutex_);
    const std::size_t complete = tracker_->complete();
    tracker_->mark_ready(begin, end);
    progressed = tracker_->complete() > complete;
  }
  if (progressed) {
    progressed_->notify();
  }
}

void BucketReducer::reduce_buckets(const Pass& pass) noexcept {
  try {
    const double total = total_weight_of_ranks(pass.weight);
    for (std::size_t i = 0; total > 0 && i < buckets_.size() && await(i); ++i) {
      reduce_bucket(i, pass.gradient, pass.weight, total);
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

double BucketReducer::total_weight_of_ranks(double weight) {
  const std::vector<double> weights = gather_from_all(group_, weight);
  return std::accumulate(weights.begin(), weights.end(), 0.0);
}

void BucketReducer::reduce_bucket(std::size_t i, std::span<float> values, double weight,
                                  double total_weight) {
  const auto [begin, end] = buckets_[i];
  allreduce_.mean({.values = values.subspan(begin, end - begin),
                   .weight = weight,
                   .may_lose = true,
                   .first = begin},
                  total_weight);
}

/// Waits until the bucket is complete. Returns false if the step is abandoned.
bool BucketReducer::await(std::size_t bucket) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (abandoned_ || tracker_->complete() > bucket) {
        return !abandoned_;
      }
    }
    progressed_->wait(no_deadline);
  }
}

/// Overlap needs several buckets and the consent of all ranks. It does not pay where the reduction
/// would take a core from the backward pass: see `Options::in_memory`.
void BucketReducer::agree(std::size_t values) {
  if (!buckets_.empty() || group_.size() == 1) {
    return;
  }
  const AllreduceCost cost = allreduce_.cost(values);
  const auto bytes = static_cast<double>(values * sizeof(float));
  const std::size_t buckets = options_.buckets.value_or(best_buckets(cost, bytes, least_bytes));
  const bool pays =
      options_.in_memory || allreduce_.compresses() || !allreduce_.pick(values)->in_memory;
  const auto wanting = gather_from_all<std::uint8_t>(group_, wants_overlap_ && pays ? 1 : 0);
  overlaps_ = buckets > 1 && std::find(wanting.begin(), wanting.end(), 0) == wanting.end();
  const MutexLock lock(mutex_);
  const BucketTracker& tracker = tracker_.emplace(values, buckets);
  for (std::size_t i = 0; i < tracker.size(); ++i) {
    buckets_.push_back(tracker.bucket(i));
  }
}

Duration BucketReducer::reduce(const WeighedValues& mine) {
  const std::span<float> gradient = mine.values.model.floats();
  const TimePoint begun = group_.world().now();
  agree(gradient.size());
  const Duration agreeing = group_.world().now() - begun;
  if (task_) {
    skip();
  } else {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      reduce_bucket(i, gradient, mine.of_model, mine.total);
    }
  }
  reduce_others(allreduce_, mine);
  return agreeing;
}

/// Ends the background task, if `begin` started one. It reduces nothing if no rank has a weight.
void BucketReducer::skip() {
  if (!task_) {
    return;
  }
  expect_all_ready();
  std::exchange(task_, nullptr)->join();
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

void BucketReducer::expect_all_ready() const {
  const MutexLock lock(mutex_);
  if (tracker_->complete() < tracker_->size()) {
    throw InternalError("a backward pass ended before it reported its whole gradient");
  }
}

std::string BucketReducer::description() const {
  const std::string reduction = allreduce_.description();
  const MutexLock lock(mutex_);
  return tracker_ && tracker_->size() > 1
             ? fmt::format("{}, in {} buckets", reduction, tracker_->size())
             : reduction;
}

}  // namespace syncopate
