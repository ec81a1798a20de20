#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "data/partition.hpp"

namespace syncopate {

/// A position in the training data: a step within an epoch.
struct FeedPosition {
  Epoch epoch;
  std::uint64_t step = 0;  ///< below `steps_per_epoch`

  friend bool operator==(const FeedPosition&, const FeedPosition&) = default;
};

/// Assigns the samples of each step to one worker.
///
/// Where parts are drawn again each epoch, every worker takes the same number of steps in an epoch:
/// the number that the slowest of them needs for its part. A worker that has finished its part gets
/// empty batches until the end of the epoch, or divides its last batches. The last batch of a part
/// may be partial. So every sample is trained on exactly once per epoch.
///
/// Where every worker keeps its part, an epoch has as many steps as the mini-batches of all workers
/// together need for all samples. A worker passes over its part repeatedly, in a different order
/// each time. So every step has samples of every part.
///
/// Pure: the batch of a position depends only on the constructor's arguments.
class BatchFeed {
 public:
  /// The last batches of a worker that needs fewer steps for its part than an epoch has.
  enum class LastBatches {
    whole,    ///< followed by empty ones
    divided,  ///< so that none is empty; they have half the batch size or more, if possible
  };

  /// `batch_sizes` are those of all workers, by rank: they decide the length of an epoch.
  /// Errors: ConfigError if a batch size is 0, or if their number is not that of the partition's
  ///         workers.
  BatchFeed(Partition partition, Rank worker, std::vector<std::uint32_t> batch_sizes,
            LastBatches last = LastBatches::whole);

  std::uint64_t steps_per_epoch() const { return steps_per_epoch_; }

  /// The position of a worker that has done `steps`, and the reverse: with them a run resumes
  /// exactly.
  FeedPosition position_after(Step steps) const;
  Step steps_before(FeedPosition position) const;
  /// The same in epochs, for schedules: 1.5 is halfway through the second.
  double epochs_before(FeedPosition position) const;
  FeedPosition next(FeedPosition position) const;
  /// The pass over the worker's samples to which a position belongs. A sample comes once in a pass.
  Epoch pass_of(FeedPosition position) const { return place_in_part(position).epoch; }

  /// The samples to train on, in order. Valid until the next call. Positions of one epoch are cheap
  /// in any order; another epoch costs a shuffle.
  std::span<const std::uint32_t> batch(FeedPosition position);

 private:
  struct Shuffled {
    Epoch pass;  ///< over the worker's part
    std::vector<std::uint32_t> samples;
  };

  FeedPosition place_in_part(FeedPosition position) const;

  Partition partition_;
  Rank worker_;
  std::uint32_t batch_size_;
  std::uint64_t steps_per_epoch_;
  std::uint64_t undivided_;           ///< the batches of an epoch before those that divide the rest
  std::optional<Shuffled> shuffled_;  ///< the pass last asked for
};

}  // namespace syncopate
