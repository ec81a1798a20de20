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
#include "job/spec/job_plan.hpp"
#include "membership/coordinator.hpp"
#include "membership/member_link.hpp"
#include "report/recorder.hpp"
#include "report/run_folder.hpp"
#include "runtime/world.hpp"
#include "scheme/replica.hpp"
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
  /// Memory of all workers of this host, zero at first; empty where the scheme needs none.
  virtual std::span<std::byte> shared_memory() const = 0;
  /// Cores of this host; 0: as many as its workers need.
  virtual std::uint32_t cores() const = 0;
  /// Threads for the update of a long shard.
  virtual std::uint32_t server_threads() const = 0;

  /// Errors: ConfigError.
  virtual std::unique_ptr<Replica> make_replica(Role role, Rank index) const = 0;
  /// The message by which a member joins. The message of a worker may include the measured cost of
  /// a step.
  virtual wire::Join introduction(Role role, Rank index, Replica& replica) const = 0;
  /// Called on the evaluator's thread before its first test, once all its other threads run.
  virtual void before_evaluating() const {}
};

/// A join message that holds only the member's role and index.
wire::Join join_message(Role role, Rank index);

/// A member that is ready to join its job. It refers to the site.
class RoleRunner {
 public:
  explicit RoleRunner(wire::Join join) : join_(std::move(join)) {}
  virtual ~RoleRunner() = default;

  /// Joins at the coordinator, to which the transport is connected, does the work of the role, and
  /// leaves. `blamed`: as that of `MemberLink::Options`. Errors: the error that ended the job.
  void run(World& world, std::function<void(const std::string& reason)> blamed = {});

  /// Null for a role that keeps no replica.
  virtual Replica* replica() { return nullptr; }

 private:
  virtual void run_role(World& world, MemberLink& link) = 0;

  wire::Join join_;
};

/// A role of a job's members: how many of them a job has, and how one is made.
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

/// What a coordinator needs besides the site.
struct CoordinatorSetup {
  Membership::Options membership;
  wire::JobDescription description = {};  ///< for nodes that enquire
  const Clock* watch = nullptr;           ///< times the status reports; null: the world's own clock
  std::function<void(const Recorder::Json&)> emit;    ///< called with each event
  std::function<bool()> interrupted;                  ///< true once the user has requested the end
  std::function<void()> before_gathering = [] {};     ///< its errors end the job
  std::string name = "the coordinator";               ///< for the error of one that hangs
  std::function<void(const std::string&)> hung = {};  ///< as `Coordinator::Options::hung`
  double wall_time = 0;                               ///< seconds since 1970, for TensorBoard
};

/// A worker's part of the site; the thread that drives its session adds the program, if there is
/// one. They refer to the site.
WorkerOptions worker_options(const MemberSite& site, Rank rank);

/// The role of node 0: coordinates the job to its end and records it in the site's folder. Errors:
/// the error that ended the job, after the `failed` event.
void run_coordinator(World& world, const MemberSite& site, const CoordinatorSetup& setup);

}  // namespace syncopate
