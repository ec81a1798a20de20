#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "job/host/host_site.hpp"
#include "job/launch/job_request.hpp"
#include "runtime/real_world.hpp"

namespace syncopate {

/// Makes the site of a process that joins a job. Errors: ConfigError, DataError.
using MakeSite = std::function<std::unique_ptr<HostSite>(
    const TrainConfig& config, std::optional<std::filesystem::path> resume_from)>;

/// Waits until the coordinator listens and returns a transport that is connected to it. Errors:
/// TimedOut once `gather_limit` of the request has passed.
std::unique_ptr<Transport> reach_coordinator(const JoinRequest& request);

/// A worker or a server of this process, in a job that another process coordinates.
class JoinedMember {
 public:
  /// Asks the coordinator for the job and for an index. `transport` is connected to the
  /// coordinator.
  /// Errors: those of `enquire`.
  JoinedMember(std::unique_ptr<Transport> transport, const JoinRequest& request);

  /// Makes the member. Errors: ConfigError or DataError if this node does not fit the job; the
  /// coordinator gets a message then.
  void prepare(const MakeSite& make_site);

  /// Joins, does the work of the role, and leaves. The caller calls `prepare` first. Errors: the
  /// error that ended the job.
  void run();

 private:
  const JoinRequest request_;
  RealWorld world_;
  const wire::JobDescription description_;
  std::unique_ptr<HostSite> site_;
  std::unique_ptr<RoleRunner> member_;
};

}  // namespace syncopate
