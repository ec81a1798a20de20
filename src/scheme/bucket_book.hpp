#pragma once

#include <cstddef>
#include <vector>

namespace syncopate {

/// Which buckets of a flat gradient are complete.
///
/// Buckets are contiguous ranges of about the same length, numbered from the end of the gradient to its beginning,
/// since a backward pass makes the gradients of the last layers first. They leave in this order, whatever order
/// values become final in: a collective has to be called in the same one by all.
///
/// Invariant: bucket i has left `incomplete` once all of its values, and those of all buckets before it, are told.
class BucketTracker {
 public:
  struct Bucket {
    std::size_t begin;
    std::size_t end;
  };

  /// At least one bucket, and no more than values.
  BucketTracker(std::size_t values, std::size_t buckets);

  std::size_t size() const { return buckets_.size(); }
  Bucket bucket(std::size_t i) const { return buckets_[i]; }

  /// Forgets what it was told.
  void begin();
  /// Values [begin, end) are final. Errors: InternalError, where more values are told of a bucket than it has.
  void mark_ready(std::size_t begin, std::size_t end);
  /// How many buckets may leave: the first so many.
  std::size_t complete() const { return complete_; }

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> missing_;  ///< values, by bucket
  std::size_t complete_ = 0;
};

}  // namespace syncopate
