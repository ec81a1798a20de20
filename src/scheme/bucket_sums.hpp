#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "collective/allreduce.hpp"
#include "collective/group.hpp"
#include "runtime/world.hpp"
#include "scheme/bucket_book.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// The weighted mean of a gradient over all workers, compressed where the allreduce compresses, bucket by bucket: with
/// overlap while the rest of it is still being computed, in a task of its own; else afterwards. Either way the same
/// buckets are added in the same order, so a mean has the same bits.
///
/// Buckets are as many as is best by the cost of sums (`best_buckets`); they, and whether there is overlap, are
/// settled at the first mean, which has none. With a single bucket there is nothing to overlap, and no task.
///
/// The weights of all have to be known before the first bucket is added, so a step begins with their exchange.
///
/// Invariant: all ranks call the same collectives in the same order, which is why they agree on overlap.
/// Thread:    one calls. From `begin` until the end of `weighted_mean` the background task has the group, the
///            allreduce and the values that it was told of for its own.
class BucketReducer final : public GradientSink {
 public:
  struct Options {
    bool overlap = true;  ///< unless somebody else does not want it
    /// Also where ranks share memory: there a sum is work for a core, which takes it from a backward pass unless one
    /// is free. Elsewhere it is mostly waiting for bytes.
    bool in_memory = true;
    std::optional<std::size_t> buckets{};  ///< empty: as many as is best, of 1 MiB or more
  };

  /// `group` and `allreduce`, which is of it, outlive this.
  BucketReducer(Group& group, Allreduce& allreduce, const Options& options);
  /// Gives up the step under way, if there is one: waits for the end of the bucket that is being added, which
  /// comes, since either the others get there or the job ends. An error of that step goes with it: who gives
  /// a step up has one already, of the same cause.
  ~BucketReducer() override;
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;

  /// Before a backward pass of this weight, into `gradient`. Returns who takes what it makes; null, where buckets are
  /// added afterwards.
  GradientSink* begin(double weight, std::span<float> gradient);
  void ready(std::size_t begin, std::size_t end) override;

  /// Settles what is to be settled once, for gradients of so many values: a collective, no part of the time that
  /// means take. Errors: those of `allgather` and `Allreduce::pick`.
  void agree(std::size_t values);

  /// Replaces the gradient by its mean over all ranks: of the step that was begun, when all of it has been told; else
  /// of these values, as `Allreduce::weighted_mean`.
  /// Errors: those of `Allreduce`; InternalError, where a step was begun and not all of it was told.
  void weighted_mean(std::span<float> values, double weight, double total_weight);

  /// As `Allreduce::description`, and the buckets, if there are several.
  std::string description() const;

 private:
  struct Pass {
    double weight;
    std::span<float> gradient;
  };

  void reduce_buckets(const Pass& pass) noexcept;
  double total_weight_of_ranks(double weight);
  void reduce_bucket(std::size_t i, std::span<float> values, double weight, double total_weight);
  bool await(std::size_t bucket);
  void expect_all_ready() const;

  Group& group_;
  Allreduce& allreduce_;
  Options options_;
  bool wants_overlap_ = false;  ///< to overlap: this rank
  bool overlaps_ = false;

  mutable std::mutex mutex_;              // guards the two below
  std::optional<BucketTracker> tracker_;  ///< empty until it is settled
  bool abandoned_ = false;
  std::exception_ptr failure_;         ///< of the background task, until it is joined
  std::unique_ptr<Event> progressed_;  ///< another bucket is complete, or the step is given up
  std::unique_ptr<Task> task_;         ///< last: it ends before what it uses
};

}  // namespace syncopate
