#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "job/host/host_site.hpp"
#include "job/launch/job_request.hpp"

namespace syncopate {

/// The site of a job that trains a built-in network on a built-in dataset. Processes that are
/// forked from one also share one load of libtorch.
class TrainingJob final : public HostSite {
 public:
  /// Loads the dataset. Errors: ConfigError, DataError.
  TrainingJob(const TrainConfig& config, std::optional<std::filesystem::path> resume_from);

  std::unique_ptr<Replica> make_replica(Role role, Rank index) const override;

  /// Makes the memory that workers share, where the scheme needs some. Call it before the fork.
  /// Errors: DataError.
  void share_memory();

 private:
  std::string device(Role role, Rank index) const override;
  std::uint64_t parameters() const override;
};

/// The checkpoint from which a resumed run continues; empty for a new run. Drops the evaluations
/// that came after it. Errors: DataError, when there is none.
std::optional<std::filesystem::path> checkpoint_of(const JobRequest& request);

}  // namespace syncopate
