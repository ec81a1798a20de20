#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/partition.hpp"
#include "job/front/loop_member.hpp"
#include "job/front/sample_source.hpp"

namespace syncopate {

/// The steps of an epoch are its shuffled order, cut into global batches. Of each step this worker
/// takes a part by its speed, next to those of the lower ranks, in the proportions on which the
/// coordinator makes all workers agree (`StepBook`). So the workers take equally many steps, and
/// the batches of all together do not depend on the speeds. The last step is larger if the rest of
/// the epoch were too small for all workers.
///
/// Errors of `next`: as `LeasedSamples`.
class DividedSamples final : public SampleSource {
 public:
  struct Options {
    ProgramNode::SharedDataset dataset;
    std::uint32_t global_batch = 0;  ///< at most the samples of the dataset
  };
  /// `whole`: one part, the whole dataset, which is the same for every worker.
  DividedSamples(std::weak_ptr<LoopJob::Member> job, Partition whole, Options options)
      : job_(std::move(job)), whole_(std::move(whole)), options_(options) {}

  /// A step.
  std::span<const std::uint32_t> next(Epoch epoch) override;
  bool restart(Epoch epoch) override;
  std::optional<std::vector<std::size_t>> run_sizes(Epoch /*epoch*/) override { return {}; }
  std::optional<std::size_t> steps_of_epoch() override;
  void step_begins(std::size_t samples, std::size_t left) override;
  void step_ended() override {}

 private:
  struct Place {
    Epoch epoch{};
    std::uint64_t step = 0;

    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Run {
    Place first;
    std::vector<std::uint32_t> parts;
  };
  struct Shuffled {
    Epoch epoch;
    std::vector<std::uint32_t> samples;
  };

  Place run_of(const Place& place) const;
  void ask(const Place& run);
  Run await_run(const Place& run);
  std::uint32_t least_rest() const;

  std::weak_ptr<LoopJob::Member> job_;
  Partition whole_;
  Options options_;
  Place next_;                     ///< the next step
  std::optional<Shuffled> order_;  ///< of the epoch under way
  std::optional<Run> run_;         ///< of the last step
  std::optional<Place> asked_;     ///< the run for which an answer will come
};

}  // namespace syncopate
