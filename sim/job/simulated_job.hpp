#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "job/members/members.hpp"
#include "scheme/replica.hpp"
#include "sim/simulation.hpp"
#include "spec/config.hpp"
#include "spec/job_plan.hpp"

namespace syncopate::sim {

/// A whole training job in the simulator: the coordinator and all members of `member_roles` run the
/// same code as in `syncopate train`, in virtual time. Gradients are computed for real; the device
/// profile gives the virtual time of a step.
///
/// Thread: a single thread computes for all replicas.
class SimulatedJob : private MemberSite {
 public:
  using MakeReplica = std::function<std::unique_ptr<Replica>()>;
  using Json = Recorder::Json;

  struct Options {
    TrainConfig config;  ///< resolved; its run_dir exists
    const Dataset& dataset;
    MakeReplica make_replica;
    bool resume = false;  ///< continues from the latest whole checkpoint of run_dir
    NetworkProfile network{};
    Scheduler::Options scheduler{};
    std::function<void(const Json&)> emit{};  ///< receives each event; empty: `events` keeps them
    std::function<bool()> interrupted{};      ///< true once the user wants the job to end
    const Clock* watch = nullptr;             ///< times the status reports; null: virtual time
    bool keep_models = true;                  ///< keeps the models for `params` and `buffers`
    double wall_time = 0;                     ///< see `CoordinatorSetup`
  };

  explicit SimulatedJob(Options options);

  /// The simulation, to which a test adds faults before `run`.
  Simulation& simulation() { return simulation_; }
  static NodeId node_of_worker(Rank rank) { return NodeId{rank.value + 1}; }
  NodeId node_of_server(Rank shard) const {
    return NodeId{options_.config.workers + 1 + shard.value};
  }

  /// Starts a new evaluator, which joins in place of the lost one. Called by an action of the
  /// simulation.
  NodeId restart_evaluator() { return add_member(member_role(Role::evaluator), Rank{0}); }

  /// Runs the job to its end.
  /// Errors: NodeFailed for the first node that failed, even if the job continued without it.
  void run();

  /// Returns the parameters of each worker at its end, by rank.
  const std::vector<std::vector<float>>& params() const { return params_; }
  const std::vector<std::vector<float>>& buffers() const { return buffers_; }
  /// Returns the error of each worker, by rank; empty if the worker ended without an error.
  const std::vector<std::string>& errors() const { return errors_; }
  /// Returns the members that were notified that they hang, in the order of the notices.
  const std::vector<NodeId>& blamed() const { return blamed_; }
  /// Returns the error that ended the job, also reported as an event; null if it had none.
  const std::exception_ptr& failure() const { return failure_; }
  const Json& summary() const { return summary_; }
  const std::vector<Json>& events() const { return events_; }
  /// Requests the end of the job, like Ctrl-C.
  void interrupt() { interrupted_ = true; }

 private:
  // The functions of MemberSite.
  const JobPlan& plan() const override { return plan_; }
  const RunFolder& folder() const override { return folder_; }
  const Dataset& dataset() const override { return options_.dataset; }
  std::optional<std::filesystem::path> resume_from() const override;
  std::span<std::byte> shared_memory() const override { return shared_memory_; }
  std::uint32_t cores() const override { return 0; }
  std::uint32_t server_threads() const override { return 1; }
  std::unique_ptr<Replica> make_replica(Role, Rank) const override {
    return options_.make_replica();
  }
  wire::Join introduction(Role role, Rank index, Replica& replica) const override;

  void add_nodes();
  NodeId add_member(const MemberRole& role, Rank index);
  void share_memory();
  void coordinate(World& world);
  void run_member(World& world, const MemberRole& role, Rank index);
  void keep_model(Rank rank, Replica& replica);
  void note(const Json& event);

  Options options_;
  JobPlan plan_;
  RunFolder folder_;
  std::optional<std::filesystem::path> resume_from_;
  Simulation simulation_;
  bool interrupted_ = false;
  std::vector<std::byte> memory_;  ///< memory that all workers share, if the scheme needs it
  std::span<std::byte> shared_memory_;
  std::vector<std::vector<float>> params_;
  std::vector<std::vector<float>> buffers_;
  std::vector<std::string> errors_;
  std::vector<NodeId> blamed_;
  std::exception_ptr failure_;
  std::vector<Json> events_;
  Json summary_;
};

}  // namespace syncopate::sim
