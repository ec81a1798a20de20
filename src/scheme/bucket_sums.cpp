#include "scheme/bucket_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

/// A shorter bucket is all latency.
constexpr double least_bytes = 1024 * 1024;

/// What this rank says, as all ranks say it.
template <class Value>
std::vector<Value> said_by_all(Group& group, const Value& mine) {
  std::vector<Value> all(group.size());
  allgather(group, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

BucketSums::BucketSums(Group& group, Allreduce& allreduce, const Options& options)
    : group_(group), allreduce_(allreduce), options_(options), moved_(group.world().make_event()) {}

BucketSums::~BucketSums() {
  {
    const std::scoped_lock lock(mutex_);
    given_up_ = true;
  }
  moved_->notify();
}

GradientSink* BucketSums::begin(double weight, std::span<float> gradient) {
  willing_ = options_.overlap;
  if (!overlaps_) {
    return nullptr;
  }
  book_->begin();
  task_ = group_.world().spawn("buckets", [this, pass = Pass{weight, gradient}] { add_up(pass); });
  return this;
}

void BucketSums::ready(std::size_t begin, std::size_t end) {
  bool moved = false;
  {
    const std::scoped_lock lock(mutex_);
    const std::size_t complete = book_->complete();
    book_->told(begin, end);
    moved = book_->complete() > complete;
  }
  if (moved) {
    moved_->notify();
  }
}

void BucketSums::add_up(const Pass& pass) noexcept {
  try {
    const double total = total_of(pass.weight);
    for (std::size_t i = 0; i < book_->size() && await(i); ++i) {
      add_bucket(i, pass.gradient, pass.weight, total);
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

double BucketSums::total_of(double weight) {
  const std::vector<double> weights = said_by_all(group_, weight);
  return std::accumulate(weights.begin(), weights.end(), 0.0);
}

void BucketSums::add_bucket(std::size_t i, std::span<float> values, double weight,
                            double total_weight) {
  const auto [begin, end] = book_->bucket(i);
  allreduce_.compressed_mean(values.subspan(begin, end - begin), begin, weight, total_weight);
}

/// False, where the step is given up.
bool BucketSums::await(std::size_t bucket) {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (given_up_ || book_->complete() > bucket) {
        return !given_up_;
      }
    }
    moved_->wait(no_deadline);
  }
}

void BucketSums::settle(std::size_t values) {
  if (book_ || group_.size() == 1) {
    return;
  }
  const AllreduceCost cost = allreduce_.cost(values);
  const auto bytes = static_cast<double>(values * sizeof(float));
  const std::size_t buckets = options_.buckets.value_or(best_buckets(cost, bytes, least_bytes));
  const bool pays =
      options_.in_memory || allreduce_.compresses() || allreduce_.pick(values) != Algorithm::shm;
  const auto willing = said_by_all<std::uint8_t>(group_, willing_ && pays ? 1 : 0);
  overlaps_ = buckets > 1 && std::find(willing.begin(), willing.end(), 0) == willing.end();
  const std::scoped_lock lock(mutex_);
  book_.emplace(values, buckets);
}

void BucketSums::weighted_mean(std::span<float> values, double weight, double total_weight) {
  settle(values.size());
  if (task_) {
    expect_all_told();
    std::exchange(task_, nullptr)->join();
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    return;
  }
  for (std::size_t i = 0; book_ && i < book_->size(); ++i) {
    add_bucket(i, values, weight, total_weight);
  }
}

void BucketSums::expect_all_told() const {
  const std::scoped_lock lock(mutex_);
  if (book_->complete() < book_->size()) {
    throw InternalError("a backward pass has ended without telling of all of its gradient");
  }
}

std::string BucketSums::description() const {
  const std::string sums = allreduce_.description();
  const std::scoped_lock lock(mutex_);
  return book_ && book_->size() > 1 ? fmt::format("{}, in {} buckets", sums, book_->size()) : sums;
}

}  // namespace syncopate
