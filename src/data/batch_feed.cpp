#include "data/batch_feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {
namespace {

std::uint64_t steps_for(std::uint64_t samples, std::uint64_t batch_size) {
  return (samples + batch_size - 1) / batch_size;
}

/// The number of batches of a part that keep their size, so that the rest leaves half a batch or
/// more for each other step of an epoch: a step of few samples takes as much time as one of many,
/// and its batch is noisy.
std::uint64_t batches_before_division(std::uint64_t samples, std::uint64_t batch_size,
                                      std::uint64_t steps) {
  std::uint64_t whole = samples / batch_size;
  while (whole > 0 && 2 * (samples - whole * batch_size) < (steps - whole) * batch_size) {
    --whole;
  }
  return whole;
}

std::uint64_t length_of_epoch(const Partition& partition,
                              const std::vector<std::uint32_t>& batch_sizes) {
  if (batch_sizes.size() != partition.workers()) {
    throw ConfigError(fmt::format("batch sizes: expected one per worker, {}; found {}",
                                  partition.workers(), batch_sizes.size()));
  }
  std::uint64_t longest = 0;
  std::uint64_t together = 0;
  for (std::uint32_t rank = 0; rank < partition.workers(); ++rank) {
    const std::uint64_t batch_size = batch_sizes[rank];
    if (batch_size == 0) {
      throw ConfigError(fmt::format("the batch size of worker {} is 0; expected 1 or more", rank));
    }
    longest = std::max(longest, steps_for(partition.size(Rank{rank}), batch_size));
    together += batch_size;
  }
  return partition.keeps_parts() ? steps_for(partition.samples(), together) : longest;
}

}  // namespace

BatchFeed::BatchFeed(Partition partition, Rank worker, std::vector<std::uint32_t> batch_sizes,
                     LastBatches last)
    : partition_(std::move(partition)),
      worker_(worker),
      batch_size_(0),
      steps_per_epoch_(length_of_epoch(partition_, batch_sizes)),
      undivided_(std::numeric_limits<std::uint64_t>::max()) {
  if (worker.value >= batch_sizes.size()) {
    throw InternalError(
        fmt::format("worker {} of {} asked for its batches", worker.value, batch_sizes.size()));
  }
  batch_size_ = batch_sizes[worker.value];
  const std::size_t samples = partition_.size(worker);
  if (last == LastBatches::divided && !partition_.keeps_parts() &&
      steps_for(samples, batch_size_) < steps_per_epoch_) {
    undivided_ = batches_before_division(samples, batch_size_, steps_per_epoch_);
  }
}

FeedPosition BatchFeed::position_after(Step steps) const {
  return {Epoch{steps.value / steps_per_epoch_}, steps.value % steps_per_epoch_};
}

Step BatchFeed::steps_before(FeedPosition position) const {
  return {position.epoch.value * steps_per_epoch_ + position.step};
}

double BatchFeed::epochs_before(FeedPosition position) const {
  return static_cast<double>(position.epoch.value) +
         static_cast<double>(position.step) / static_cast<double>(steps_per_epoch_);
}

FeedPosition BatchFeed::next(FeedPosition position) const {
  return position_after({steps_before(position).value + 1});
}

/// The pass over the worker's part, and the step within it.
FeedPosition BatchFeed::place_in_part(FeedPosition position) const {
  if (!partition_.keeps_parts()) {
    return position;
  }
  const std::uint64_t steps = steps_before(position).value;
  const std::uint64_t pass = steps_for(partition_.size(worker_), batch_size_);
  return {Epoch{steps / pass}, steps % pass};
}

std::span<const std::uint32_t> BatchFeed::batch(FeedPosition position) {
  const FeedPosition place = place_in_part(position);
  if (!shuffled_ || shuffled_->pass != place.epoch) {
    shuffled_ = {place.epoch, partition_.part(worker_, place.epoch)};
  }
  const std::span<const std::uint32_t> samples(shuffled_->samples);
  if (place.step < undivided_) {
    const std::uint64_t first = std::min<std::uint64_t>(place.step * batch_size_, samples.size());
    return samples.subspan(first, std::min<std::uint64_t>(batch_size_, samples.size() - first));
  }
  const auto rest = samples.subspan(undivided_ * batch_size_);
  const std::uint64_t steps = steps_per_epoch_ - undivided_;
  const std::uint64_t step = place.step - undivided_;
  const std::uint64_t first = rest.size() * step / steps;
  return rest.subspan(first, rest.size() * (step + 1) / steps - first);
}

}  // namespace syncopate
