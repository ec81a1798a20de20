#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "scheme/replica.hpp"
#include "sim/simulation.hpp"
#include "train/config.hpp"
#include "train/job_plan.hpp"
#include "train/recorder.hpp"
#include "train/run_folder.hpp"

namespace syncopate {

/// A whole training job in the simulator: coordinator, workers, servers and evaluator, exactly the
/// code that `syncopate train` runs, in virtual time.
class SimulatedJob {
 public:
  using MakeReplica = std::function<std::unique_ptr<Replica>()>;

  struct Options {
    TrainConfig config;  ///< resolved; its run_dir is used
    const Dataset& dataset;
    MakeReplica make_replica;
    bool resume = false;  ///< from the latest checkpoint of run_dir
    sim::NetworkProfile network{};
  };

  explicit SimulatedJob(Options options);

  /// For faults: called before `run`.
  sim::Simulation& simulation() { return simulation_; }
  static NodeId node_of_worker(Rank rank) { return NodeId{rank.value + 1}; }
  NodeId node_of_server(Rank shard) const {
    return NodeId{options_.config.workers + 1 + shard.value};
  }

  /// Makes the run folder, unless resumed, and runs the job to its end.
  /// Errors: sim::NodeFailed, of the first node that failed.
  void run();

  /// The parameters of each worker at its end, by rank.
  const std::vector<std::vector<float>>& params() const { return params_; }
  const std::vector<std::vector<float>>& buffers() const { return buffers_; }
  /// What each worker's body ended with; empty where it ended well.
  const std::vector<std::string>& errors() const { return errors_; }
  const Recorder::Json& summary() const { return summary_; }
  const std::vector<Recorder::Json>& events() const { return events_; }
  /// What the user would do by Ctrl-C.
  void interrupt() { interrupted_ = true; }

 private:
  void coordinate(World& world);
  void work(World& world, Rank rank);
  void serve(World& world, Rank shard);
  void evaluate(World& world);

  Options options_;
  JobPlan plan_;
  RunFolder folder_;
  sim::Simulation simulation_;
  bool interrupted_ = false;
  std::vector<std::byte> shared_memory_;
  std::vector<std::vector<float>> params_;
  std::vector<std::vector<float>> buffers_;
  std::vector<std::string> errors_;
  std::vector<Recorder::Json> events_;
  Recorder::Json summary_;
};

}  // namespace syncopate
