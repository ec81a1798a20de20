#include "scheme/bucket_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "collective/allgather.hpp"

namespace syncopate {
namespace {

/// A shorter bucket is all latency.
constexpr double least_bytes = 1024 * 1024;

/// What this rank says, as all ranks say it.
template <class Value>
std::vector<Value> gather_from_all(Group& group, const Value& mine) {
  std::vector<Value> all(group.size());
  allgather(group, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

BucketReducer::BucketReducer(Group& group, Allreduce& allreduce, const Options& options)
    : group_(group),
      allreduce_(allreduce),
      options_(options),
      progressed_(group.world().make_event()) {}

BucketReducer::~BucketReducer() {
  {
    const std::scoped_lock lock(mutex_);
    abandoned_ = true;
  }
  progressed_->notify();
}

GradientSink* BucketReducer::begin(double weight, std::span<float> gradient) {
  wants_overlap_ = options_.overlap;
  if (!overlaps_) {
    return nullptr;
  }
  tracker_->begin();
  task_ = group_.world().spawn("buckets",
                               [this, pass = Pass{weight, gradient}] { reduce_buckets(pass); });
  return this;
}

void BucketReducer::ready(std::size_t begin, std::size_t end) {
  bool progressed = false;
  {
    const std::scoped_lock lock(mutex_);
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
    for (std::size_t i = 0; i < tracker_->size() && await(i); ++i) {
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
  const auto [begin, end] = tracker_->bucket(i);
  allreduce_.compressed_mean(values.subspan(begin, end - begin), begin, weight, total_weight);
}

/// False, where the step is given up.
bool BucketReducer::await(std::size_t bucket) {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (abandoned_ || tracker_->complete() > bucket) {
        return !abandoned_;
      }
    }
    progressed_->wait(no_deadline);
  }
}

void BucketReducer::agree(std::size_t values) {
  if (tracker_ || group_.size() == 1) {
    return;
  }
  const SumCost cost = allreduce_.cost(values);
  const auto bytes = static_cast<double>(values * sizeof(float));
  const std::size_t buckets = options_.buckets.value_or(best_buckets(cost, bytes, least_bytes));
  const bool pays =
      options_.in_memory || allreduce_.compresses() || allreduce_.pick(values) != Algorithm::shm;
  const auto wanting = gather_from_all<std::uint8_t>(group_, wants_overlap_ && pays ? 1 : 0);
  overlaps_ = buckets > 1 && std::find(wanting.begin(), wanting.end(), 0) == wanting.end();
  const std::scoped_lock lock(mutex_);
  tracker_.emplace(values, buckets);
}

void BucketReducer::weighted_mean(std::span<float> values, double weight, double total_weight) {
  agree(values.size());
  if (task_) {
    expect_all_ready();
    std::exchange(task_, nullptr)->join();
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    return;
  }
  for (std::size_t i = 0; tracker_ && i < tracker_->size(); ++i) {
    reduce_bucket(i, values, weight, total_weight);
  }
}

void BucketReducer::expect_all_ready() const {
  const std::scoped_lock lock(mutex_);
  if (tracker_->complete() < tracker_->size()) {
    throw InternalError("a backward pass has ended without telling of all of its gradient");
  }
}

std::string BucketReducer::description() const {
  const std::string sums = allreduce_.description();
  const std::scoped_lock lock(mutex_);
  return tracker_ && tracker_->size() > 1 ? fmt::format("{}, in {} buckets", sums, tracker_->size())
                                          : sums;
}

}  // namespace syncopate
