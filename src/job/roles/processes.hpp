#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/host/coordinate.hpp"
#include "job/host/host_site.hpp"
#include "job/launch/descriptor.hpp"
#include "job/launch/job_request.hpp"
#include "job/launch/run_claim.hpp"
#include "job/launch/supervisor.hpp"

namespace syncopate {

/// The site of a job that trains a built-in network on a built-in dataset. Processes that are
/// forked from one process also share one loaded copy of libtorch.
class TrainingJob final : public HostSite {
 public:
  /// Loads the dataset. Errors: ConfigError, DataError.
  TrainingJob(const TrainConfig& config, std::optional<std::filesystem::path> resume_from);

  std::unique_ptr<Replica> make_replica(Role role, Rank index) const override;

  /// Makes the memory that workers share, if the scheme needs it. The caller calls it before the
  /// fork. Errors: DataError.
  void share_memory();

 private:
  std::string device(Role role, Rank index) const override;
  std::uint64_t parameters() const override;
};

/// Returns the checkpoint from which a resumed run continues: the newest that is whole; one line on
/// standard error names newer ones that are damaged. Returns empty for a new run, and, with a line
/// on standard error, for a run that ended before its first checkpoint. Errors: DataError if the
/// run has no whole checkpoint but should have one.
std::optional<std::filesystem::path> checkpoint_of(const JobRequest& request);

/// Returns true if the servers are threads of the coordinator's process.
bool servers_share_process(const TrainConfig& config);

// The processes of a job on this machine. Each refers to the job, which must outlive them.

/// Returns the coordinator's process. It owns the listener and the events.
Child coordinator_process(const TrainingJob& job, ListeningSocket listener, Descriptor events,
                          CoordinateOptions options);
/// Returns the process of one member.
Child member_process(const TrainingJob& job, const CoordinatorEndpoint& endpoint, Role role,
                     Rank index);
/// Returns the processes of all members that have a separate process.
std::vector<Child> member_processes(const TrainingJob& job, const CoordinatorEndpoint& endpoint);
/// Returns a function that makes the servers in the coordinator's process; it makes none if servers
/// have processes of their own.
MakeMembers servers_in_process(const TrainingJob& job);

/// Returns the only process of a job in virtual time. It runs all nodes in the simulator, on the
/// network of the cluster file's `[link]`. It writes events and handles end requests in the same
/// way as a coordinator's process, and owns the events.
Child simulation_process(const TrainingJob& job, Descriptor events);

/// Prepares the folder of a resumed run once the job has its data and its checkpoint: see
/// `RunClaim::go_on_from`. Does nothing for a new run.
void go_on(RunClaim& claim, const TrainingJob& job);

/// Runs and shows the processes of a job until they end; returns the job's exit status. A job that
/// is refused before its first round leaves its folder unchanged. Errors: those of `run_watched`.
int run_claimed(RunClaim& claim, Supervisor::Options job, const OpenView& open_view);

}  // namespace syncopate
