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

/// Waits until the coordinator listens, for as long as the request allows. Errors: TimedOut.
std::unique_ptr<Transport> reach_coordinator(const JoinRequest& request);

/// A worker or a server of this process, in a job that another process coordinates.
class JoinedMember {
 public:
  /// Asks the coordinator for the job and for an index. `transport` has reached the coordinator.
  /// Errors: as `enquire`.
  JoinedMember(std::unique_ptr<Transport> transport, const JoinRequest& request);

  /// Makes the member. Errors: ConfigError, DataError: this node does not fit the job; the
  /// coordinator gets a message.
  void prepare(const MakeSite& make_site);

  /// Joins, does the work of the role, and leaves. Call it after `prepare`. Errors: the error that
  /// ended the job.
  void run();

  RoleRunner& member() { return *member_; }
  World& world() { return world_; }

 private:
  const JoinRequest request_;
  RealWorld world_;
  const wire::JobDescription description_;
  std::unique_ptr<HostSite> site_;
  std::unique_ptr<RoleRunner> member_;
};

}  // namespace syncopate
