#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "data/partition.hpp"
#include "job/front/loop_member.hpp"

namespace syncopate {

/// Ranges of each epoch's order that the coordinator leases to this worker, which asks for the next
/// one while it takes the last two steps of the one before. The epoch has ended for this worker
/// when its lease is of a later one.
///
/// Errors of all calls: ConfigError, once the program has left the job, and in a forked process;
///         the error that ended the job.
class LeasedSamples final : public SampleSource {
 public:
  struct Options {
    ProgramNode::SharedDataset dataset;
    std::uint64_t step_size = 0;
    bool sizes_change = false;  ///< later steps have other sizes
  };
  /// `whole`: one part, the whole dataset, which is the same for every worker.
  LeasedSamples(std::weak_ptr<LoopJob::Member> job, Partition whole, Options options)
      : job_(std::move(job)), whole_(std::move(whole)), options_(options) {}

  std::span<const std::uint32_t> next(Epoch epoch) override;
  bool restart(Epoch /*epoch*/) override { return false; }
  std::optional<std::vector<std::size_t>> run_sizes(Epoch /*epoch*/) override { return {}; }
  void step_begins(std::size_t samples, std::size_t left) override;
  void step_ended() override;

 private:
  struct Shuffled {
    Epoch epoch;
    std::vector<std::uint32_t> samples;
  };
  struct StepUnderWay {
    std::size_t samples = 0;
    TimePoint since;
  };

  std::shared_ptr<LoopJob::Member> job() const { return to_member(job_); }
  void ask(Epoch epoch);
  Lease await_lease();

  std::weak_ptr<LoopJob::Member> job_;
  Partition whole_;
  Options options_;
  std::optional<Shuffled> order_;  ///< of the epoch under way
  std::optional<Lease> lease_;     ///< the next one
  bool asked_ = false;             ///< for the next one
  std::optional<StepUnderWay> step_;
  // Since the last request:
  std::uint64_t trained_ = 0;
  Duration taken_{};
};

}  // namespace syncopate
