#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.hpp"
#include "membership/coordinator.hpp"
#include "membership/member_link.hpp"
#include "report/recorder.hpp"
#include "report/run_folder.hpp"
#include "runtime/world.hpp"
#include "scheme/replica.hpp"
#include "spec/job_plan.hpp"
#include "train/member_roles.hpp"

namespace syncopate {

/// The parts from which the members of a job are made. A process of a real job, the simulator, and
/// a program that holds a whole job each supply their own.
///
/// Thread: members that share a process also share its site, so every function may be called from
///         several threads at once.
class MemberSite {
 public:
  virtual ~MemberSite() = default;

  virtual const JobPlan& plan() const = 0;
  virtual const RunFolder& folder() const = 0;
  virtual const Dataset& dataset() const = 0;
  /// The checkpoint from which the job continues; empty for a new run.
  virtual std::optional<std::filesystem::path> resume_from() const = 0;
  /// Memory that all workers of this host share, initially zero; empty if the scheme needs none.
  virtual std::span<std::byte> shared_memory() const = 0;
  /// Number of cores of this host; 0 means as many as its workers need.
  virtual std::uint32_t cores() const = 0;
  /// Number of threads for the update of a long shard.
  virtual std::uint32_t server_threads() const = 0;

  /// Errors: ConfigError.
  virtual std::unique_ptr<Replica> make_replica(Role role, Rank index) const = 0;
  /// Returns the message with which a member joins. A worker's message may include the measured
  /// cost of a step.
  virtual wire::Join introduction(Role role, Rank index, Replica& replica) const = 0;
  /// Called on the evaluator's thread before its first test, after all its other threads have
  /// started.
  virtual void before_evaluating() const {}
};

/// Returns a join message that holds only the member's role and index.
wire::Join join_message(Role role, Rank index);

/// A member that is ready to join its job. It refers to the site.
class RoleRunner {
 public:
  explicit RoleRunner(wire::Join join) : join_(std::move(join)) {}
  virtual ~RoleRunner() = default;

  /// Joins at the coordinator, to which the transport is connected, does the work of the role, and
  /// leaves. `blamed`: see `MemberLink::Options`. Errors: the error that ended the job.
  void run(World& world, std::function<void(const std::string& reason)> blamed = {});

  /// Returns the member's replica, or null for a role that keeps none.
  virtual Replica* replica() { return nullptr; }

 private:
  virtual void run_role(World& world, MemberLink& link) = 0;

  wire::Join join_;
};

/// A role of a job's members, with functions that count its members and make one.
struct MemberRole {
  Role role;
  std::string_view name;  ///< "worker"
  std::uint32_t (*count)(const Membership::Options& membership);
  /// Errors: ConfigError, DataError.
  std::unique_ptr<RoleRunner> (*make)(const MemberSite& site, Rank index);
};

/// The roles of every job besides its coordinator, in the order in which views list members.
std::span<const MemberRole> member_roles();

const MemberRole& member_role(Role role);

/// Options of a coordinator beyond those of the site.
struct CoordinatorSetup {
  Membership::Options membership;
  wire::JobDescription description = {};  ///< sent to nodes that ask for the job
  const Clock* watch = nullptr;           ///< times the status reports; null: the world's own clock
  std::function<void(const Recorder::Json&)> emit;    ///< called with each event
  std::function<bool()> interrupted;                  ///< true once the user has requested the end
  std::function<void()> before_gathering = [] {};     ///< an error in it ends the job
  std::string name = "the coordinator";               ///< for the error if it hangs
  std::function<void(const std::string&)> hung = {};  ///< see `Coordinator::Options::hung`
  double wall_time = 0;                               ///< seconds since 1970, for TensorBoard
  NodeService* service = nullptr;                     ///< see `Coordinator::Options::service`
};

/// Returns a worker's options, which refer to the site. The thread that runs the worker's session
/// adds the program, if the job has one.
WorkerOptions worker_options(const MemberSite& site, Rank rank);

/// Runs node 0: coordinates the job to its end and records it in the site's folder. Errors: the
/// error that ended the job, after the `failed` event.
void run_coordinator(World& world, const MemberSite& site, const CoordinatorSetup& setup);

}  // namespace syncopate
