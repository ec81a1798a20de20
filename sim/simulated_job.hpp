#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "job/spec/config.hpp"
#include "job/spec/job_plan.hpp"
#include "report/recorder.hpp"
#include "report/run_folder.hpp"
#include "scheme/replica.hpp"
#include "sim/simulation.hpp"

namespace syncopate::sim {

/// A whole training job in the simulator: coordinator, workers, servers and evaluator, exactly the
/// code that `syncopate train` runs, in virtual time. Gradients are computed really and take no
/// virtual time but what the device profiles say.
///
/// Thread: one, which computes for all replicas.
class SimulatedJob {
 public:
  using MakeReplica = std::function<std::unique_ptr<Replica>()>;
  using Json = Recorder::Json;

  struct Options {
    TrainConfig config;  ///< resolved; its run_dir is there
    const Dataset& dataset;
    MakeReplica make_replica;
    bool resume = false;  ///< from the latest checkpoint of run_dir
    NetworkProfile network{};
    Scheduler::Options scheduler{};
    std::function<void(const Json&)> emit{};  ///< takes each event; empty: `events` keeps them
    std::function<bool()> interrupted{};      ///< whether the user wants an end
    const Clock* watch = nullptr;  ///< by which statuses are told now and then; null: virtual time
    bool keep_models = true;       ///< what `params` and `buffers` give
  };

  explicit SimulatedJob(Options options);

  /// For faults: called before `run`.
  Simulation& simulation() { return simulation_; }
  static NodeId node_of_worker(Rank rank) { return NodeId{rank.value + 1}; }
  NodeId node_of_server(Rank shard) const {
    return NodeId{options_.config.workers + 1 + shard.value};
  }

  /// Runs the job to its end.
  /// Errors: NodeFailed, of the first node that failed, even where the job went on without it.
  void run();

  /// The parameters of each worker at its end, by rank.
  const std::vector<std::vector<float>>& params() const { return params_; }
  const std::vector<std::vector<float>>& buffers() const { return buffers_; }
  /// What each worker's body ended with; empty where it ended well.
  const std::vector<std::string>& errors() const { return errors_; }
  /// The error that the job ended with, which was told as an event; null where it ended well.
  const std::exception_ptr& failure() const { return failure_; }
  const Json& summary() const { return summary_; }
  const std::vector<Json>& events() const { return events_; }
  /// What the user would do by Ctrl-C.
  void interrupt() { interrupted_ = true; }

 private:
  void add_nodes();
  void share_memory();
  void coordinate(World& world);
  void work(World& world, Rank rank);
  void serve(World& world, Rank shard);
  void evaluate(World& world);
  void note(const Json& event);
  wire::Join introduction(wire::Role role, Rank rank, const std::string& device) const;
  std::optional<std::filesystem::path> checkpoint() const;

  Options options_;
  JobPlan plan_;
  RunFolder folder_;
  Simulation simulation_;
  bool interrupted_ = false;
  std::vector<std::byte> shared_memory_;
  std::vector<std::vector<float>> params_;
  std::vector<std::vector<float>> buffers_;
  std::vector<std::string> errors_;
  std::exception_ptr failure_;
  std::vector<Json> events_;
  Json summary_;
};

}  // namespace syncopate::sim
