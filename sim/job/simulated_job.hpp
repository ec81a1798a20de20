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
#include "job/spec/config.hpp"
#include "job/spec/job_plan.hpp"
#include "scheme/replica.hpp"
#include "sim/simulation.hpp"

namespace syncopate::sim {

/// A whole training job in the simulator: the coordinator and all members of `member_roles`, the
/// code that `syncopate train` runs, in virtual time. Gradients are computed for real; the virtual
/// time of a step is that of the device profile.
///
/// Thread: one, which computes for all replicas.
class SimulatedJob : private MemberSite {
 public:
  using MakeReplica = std::function<std::unique_ptr<Replica>()>;
  using Json = Recorder::Json;

  struct Options {
    TrainConfig config;  ///< resolved; its run_dir is there
    const Dataset& dataset;
    MakeReplica make_replica;
    bool resume = false;  ///< from the latest whole checkpoint of run_dir
    NetworkProfile network{};
    Scheduler::Options scheduler{};
    std::function<void(const Json&)> emit{};  ///< takes each event; empty: `events` keeps them
    std::function<bool()> interrupted{};      ///< true once the user wants the job to end
    const Clock* watch = nullptr;             ///< times the status reports; null: virtual time
    bool keep_models = true;                  ///< for `params` and `buffers`
    double wall_time = 0;                     ///< as of `CoordinatorSetup`
  };

  explicit SimulatedJob(Options options);

  /// For faults: called before `run`.
  Simulation& simulation() { return simulation_; }
  static NodeId node_of_worker(Rank rank) { return NodeId{rank.value + 1}; }
  NodeId node_of_server(Rank shard) const {
    return NodeId{options_.config.workers + 1 + shard.value};
  }

  /// Another evaluator wants to join: the one that was lost has been started again. Called by an
  /// action of the simulation.
  NodeId restart_evaluator() { return add_member(member_role(Role::evaluator), Rank{0}); }

  /// Runs the job to its end.
  /// Errors: NodeFailed, of the first node that failed, even where the job went on without it.
  void run();

  /// The parameters of each worker at its end, by rank.
  const std::vector<std::vector<float>>& params() const { return params_; }
  const std::vector<std::vector<float>>& buffers() const { return buffers_; }
  /// The error of each worker, by rank; empty where it ended well.
  const std::vector<std::string>& errors() const { return errors_; }
  /// The members that are said to hang, as they have learnt it, in this order.
  const std::vector<NodeId>& blamed() const { return blamed_; }
  /// The error that ended the job, also reported as an event; null where it ended well.
  const std::exception_ptr& failure() const { return failure_; }
  const Json& summary() const { return summary_; }
  const std::vector<Json>& events() const { return events_; }
  /// Asks the job to end, as Ctrl-C does.
  void interrupt() { interrupted_ = true; }

 private:
  // As the members' site.
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
  std::vector<std::byte> memory_;  ///< of all workers, where the scheme needs some
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
