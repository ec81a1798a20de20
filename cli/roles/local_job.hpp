#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/handlers.hpp"
#include "data/dataset.hpp"
#include "train/job_plan.hpp"
#include "train/run_folder.hpp"

namespace syncopate::cli {

/// A training job whose processes all run on this machine: what each of them does.
///
/// Made before the processes are forked, so that they share one copy of the dataset and one load of
/// libtorch. Each role returns the exit status of its process, and has then said why it failed,
/// unless the coordinator says it for all.
class LocalJob {
 public:
  /// Loads the dataset. Errors: ConfigError, DataError.
  explicit LocalJob(const TrainCommand& command);

  const JobPlan& plan() const { return plan_; }
  const Dataset& dataset() const { return dataset_; }

  /// `listener`: a listening socket, the coordinator's from now on. `events`: a descriptor that takes
  /// one line of JSON an event.
  int coordinate(int listener, int events) const;
  /// `hub`: the address of the listener.
  int work(Rank rank, const std::string& hub) const;
  int evaluate(const std::string& hub) const;

 private:
  std::unique_ptr<Replica> make_replica(const std::string& device) const;
  std::string agreement(Replica& replica) const;

  JobPlan plan_;
  RunFolder folder_;
  Dataset dataset_;
  std::string token_;
  std::optional<std::filesystem::path> resume_from_;
};

}  // namespace syncopate::cli
