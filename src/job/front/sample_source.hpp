#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "data/batch_feed.hpp"

namespace syncopate {

/// Where the samples of one worker's loop come from, in runs of one or more of its steps.
///
/// Order:  `next`, then `step_begins` for each step of the run, each ended by `step_ended`.
///         Epochs never go back; the loop may leave one before its end.
/// Thread: one.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  /// The next run of samples of `epoch`, valid until the next call; empty at the end of the epoch.
  virtual std::span<const std::uint32_t> next(Epoch epoch) = 0;

  /// Begins `epoch` again. False: its samples are others than those of an earlier job.
  virtual bool restart(Epoch epoch) = 0;

  /// The samples of each run of `epoch`, in order. None: it is not known before they come.
  virtual std::optional<std::vector<std::size_t>> run_sizes(Epoch epoch) = 0;

  /// The steps of an epoch, where each run is one; none: steps are cut from runs.
  virtual std::optional<std::size_t> steps_of_epoch() { return std::nullopt; }

  /// The loop gets `samples` samples for a step; `left` of the run come after them.
  virtual void step_begins(std::size_t samples, std::size_t left) = 0;
  /// The loop asks for more samples, or a step has not begun yet.
  virtual void step_ended() = 0;
};

/// A part of each epoch that follows from the seed.
class FixedSamples final : public SampleSource {
 public:
  explicit FixedSamples(BatchFeed feed) : feed_(std::move(feed)) {}

  /// A batch. Those without samples, which fill up a worker's epoch, are skipped.
  std::span<const std::uint32_t> next(Epoch epoch) override;
  bool restart(Epoch epoch) override;
  std::optional<std::vector<std::size_t>> run_sizes(Epoch epoch) override;
  void step_begins(std::size_t /*samples*/, std::size_t /*left*/) override {}
  void step_ended() override {}

 private:
  BatchFeed feed_;
  FeedPosition position_;  ///< of the next batch
};

}  // namespace syncopate
