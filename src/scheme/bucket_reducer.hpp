#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "collective/allreduce.hpp"
#include "collective/group.hpp"
#include "runtime/world.hpp"
#include "scheme/replica.hpp"
#include "scheme/round_reduction.hpp"

namespace syncopate {

/// Tracks which buckets of a flat gradient are complete. Pure.
///
/// Buckets are contiguous ranges of about the same length. They are numbered from the end of the
/// gradient to its beginning, since a backward pass computes the gradients of the last layers
/// first. All ranks must call collectives in the same order, so buckets are released in the order
/// of their numbers, whatever the order in which their values become final.
///
/// Invariant: bucket i is among the `complete` ones if and only if all values of buckets 0 to i are
///            final.
class BucketTracker {
 public:
  struct Bucket {
    std::size_t begin;
    std::size_t end;
  };

  /// At least one bucket, and no more buckets than values.
  BucketTracker(std::size_t values, std::size_t buckets);

  std::size_t size() const { return buckets_.size(); }
  Bucket bucket(std::size_t i) const { return buckets_[i]; }

  /// Begins a new gradient: no value is final.
  void begin();
  /// Values [begin, end) are final. Errors: InternalError if a value is marked twice.
  void mark_ready(std::size_t begin, std::size_t end);
  /// The number of buckets that may be reduced: buckets 0 to `complete() − 1`.
  std::size_t complete() const { return complete_; }

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> missing_;  ///< values that are not final, by bucket
  std::size_t complete_ = 0;
};

/// Reduces a gradient to its weighted mean over all workers, bucket by bucket, compressed where the
/// allreduce compresses.
///
/// With overlap a background task reduces complete buckets while the backward pass computes the
/// others, as DistributedDataParallel does; without overlap the caller reduces all buckets after
/// the pass. Both reduce the same buckets in the same order, so the mean has the same bits.
///
/// The cost model of the allreduce gives the number of buckets (`best_buckets`). Ranks agree on it,
/// and on overlap, at the first mean, which has no overlap. A single bucket needs no task. The
/// weights of all ranks must be known before the first bucket is reduced, so the task begins with
/// an exchange of weights.
///
/// Invariant: all ranks call the same collectives in the same order; therefore they agree on
///            overlap.
/// Thread:    one thread calls. From `begin` until the end of `reduce` the background task
///            owns the group, the allreduce and the values that are ready.
class BucketReducer final : public RoundReduction, public GradientSink {
 public:
  struct Options {
    bool overlap = true;  ///< unless another rank refuses it
    /// Overlaps also if ranks share memory. A reduction in shared memory occupies a core, which the
    /// backward pass loses unless a core is spare; other reductions mostly wait for bytes.
    bool in_memory = true;
    std::optional<std::size_t> buckets{};  ///< empty: the cheapest number, of 1 MiB or more each
    /// The limit of waits for the others' weights, which come after the slowest backward pass.
    std::function<Duration()> wait_limit = {};
  };

  /// `group` and `allreduce`, which belongs to it, outlive this.
  BucketReducer(Group& group, Allreduce& allreduce, const Options& options);
  /// Abandons the step that is under way, if there is one, and waits for the end of the bucket that
  /// is being reduced. That bucket ends because the other ranks reduce it too, or because the job
  /// ends. An error of that step is dropped: a caller that abandons a step already has an error
  /// with the same cause.
  ~BucketReducer() override;
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;

  /// Null if buckets are reduced after the pass.
  GradientSink* begin(double weight, std::span<float> gradient) override;
  void ready(std::size_t begin, std::size_t end) override;

  /// If `begin` returned a sink, waits until the background task has reduced that pass's gradient;
  /// otherwise reduces it here. Errors: also InternalError if the pass did not report the whole
  /// gradient.
  Duration reduce(const WeighedValues& mine) override;
  void skip() override;

  /// Also the number of buckets where there are several.
  std::string description() const override;

 private:
  struct Pass {
    double weight;
    std::span<float> gradient;
  };

  /// Agrees with all ranks on buckets and overlap, once, for gradients of `values` values. A
  /// collective. Errors: those of `allgather` and `Allreduce::pick`.
  void agree(std::size_t values);
  void reduce_buckets(const Pass& pass) noexcept;
  double total_weight_of_ranks(double weight);
  void reduce_bucket(std::size_t i, std::span<float> values, double weight, double total_weight);
  bool await(std::size_t bucket);
  void expect_all_ready() const;

  Group& group_;
  Allreduce& allreduce_;
  Options options_;
  bool wants_overlap_ = false;  ///< on this rank
  bool overlaps_ = false;       ///< all ranks agreed to

  /// Empty until ranks agree; then constant.
  std::vector<BucketTracker::Bucket> buckets_;

  mutable Mutex mutex_;
  std::optional<BucketTracker> tracker_ GUARDED_BY(mutex_);  ///< empty until ranks agree
  bool abandoned_ GUARDED_BY(mutex_) = false;

  std::exception_ptr failure_;         ///< of the background task, until it is joined
  std::unique_ptr<Event> progressed_;  ///< another bucket is complete, or the step is abandoned
  std::unique_ptr<Task> task_;         ///< last: it ends before the objects that it uses
};

}  // namespace syncopate
