#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "checkpoint/checkpoint.hpp"
#include "cli/handlers.hpp"
#include "data/dataset.hpp"
#include "job/launch/shared_memory.hpp"
#include "job/spec/job_plan.hpp"
#include "report/run_folder.hpp"
#include "scheme/replica.hpp"
#include "wire/control.pb.h"

namespace syncopate::cli {

/// A training job as one of its processes has it in memory, whatever its role. Where several are
/// forked from one, they share one copy of the dataset and one load of libtorch.
class Job {
 public:
  /// Loads the dataset. `resume_from`: the checkpoint that the job goes on from, if it does.
  /// Errors: ConfigError, DataError.
  Job(const TrainConfig& config, std::optional<std::filesystem::path> resume_from);

  const JobPlan& plan() const { return plan_; }
  const TrainConfig& config() const { return plan_.config(); }
  const RunFolder& folder() const { return folder_; }
  const Dataset& dataset() const { return dataset_; }
  const std::optional<std::filesystem::path>& resume_from() const { return resume_from_; }
  /// Before this run, where it goes on from a checkpoint.
  std::uint64_t rounds_done() const { return resume_from_ ? round_of(*resume_from_) : 0; }

  /// The device that this process computes on, as people know it. Errors: ConfigError.
  std::string device(Rank rank) const;
  /// Errors: ConfigError.
  std::unique_ptr<Replica> make_replica(const std::string& device) const;

  /// Makes the memory that workers share under a scheme that wants some. Called before they are
  /// forked. Errors: DataError.
  void share_memory();
  std::span<std::byte> shared_memory() const { return shared_memory_.bytes(); }

  /// What every member must agree upon, in words.
  std::string agreement() const;
  /// What nodes are told that enquire.
  wire::JobDescription description() const;

 private:
  JobPlan plan_;
  RunFolder folder_;
  Dataset dataset_;
  std::optional<std::filesystem::path> resume_from_;
  SharedMemory shared_memory_;
};

/// The checkpoint from which a resumed run goes on; empty for a new run. Drops the evaluations that
/// came after it. Errors: DataError, when there is none.
std::optional<std::filesystem::path> checkpoint_of(const TrainCommand& command);

}  // namespace syncopate::cli
