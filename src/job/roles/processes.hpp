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

/// The checkpoint from which a resumed run continues: the newest that is whole; one line on
/// standard error names newer ones that are damaged. Empty for a new run, and, with a line on
/// standard error, for one that ended before it wrote any. Errors: DataError, when all are damaged.
std::optional<std::filesystem::path> checkpoint_of(const JobRequest& request);

/// True where servers are threads of the coordinator's process.
bool servers_share_process(const TrainConfig& config);

// The processes of a job on this machine. Each refers to the job, which outlives them.

/// Owns the listener and the events.
Child coordinator_process(const TrainingJob& job, ListeningSocket listener, Descriptor events,
                          CoordinateOptions options);
/// The process of one member.
Child member_process(const TrainingJob& job, const CoordinatorEndpoint& endpoint, Role role,
                     Rank index);
/// Every member of `member_roles` with a separate process.
std::vector<Child> member_processes(const TrainingJob& job, const CoordinatorEndpoint& endpoint);
/// Makes the servers that share the coordinator's process; none where they have their own.
MakeMembers servers_in_process(const TrainingJob& job);

/// The one process of a job in virtual time: all nodes, in the simulator, under the network of the
/// cluster file's `[link]`. It writes events and takes end requests as a coordinator's process
/// does. Owns the events.
Child simulation_process(const TrainingJob& job, Descriptor events);

/// Of a resumed job, once it has its data and its checkpoint: see `RunClaim::go_on_from`.
void go_on(RunClaim& claim, const TrainingJob& job);

/// Runs and shows the processes of a job to their end; returns its exit status. A job that was
/// refused before its first round leaves in its folder what was there before. Errors: as
/// `run_watched`.
int run_claimed(RunClaim& claim, Supervisor::Options job, const OpenView& open_view);

}  // namespace syncopate
