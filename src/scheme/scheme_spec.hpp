#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collective/group.hpp"
#include "config/option_values.hpp"
#include "optim/delay_compensation.hpp"
#include "optim/optimizer_spec.hpp"
#include "pacer/pacer.hpp"
#include "pacer/pacer_client.hpp"
#include "scheme/averaging.hpp"
#include "scheme/local_progress.hpp"
#include "scheme/push_weight.hpp"
#include "scheme/scheme.hpp"
#include "scheme/shared_model.hpp"
#include "server/consistency.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// What the workers of a scheme exchange their replicas or gradients through.
enum class Topology {
  none,           ///< there is one worker
  allreduce,      ///< collectives; or a server that only reduces (`--aggregate server`)
  server,         ///< a parameter server, which keeps the model
  shared_memory,  ///< of one host
};

/// How the steps of a job's workers go together.
enum class SyncMode {
  lockstep,  ///< all are at the same step, and synchronize after steps that all know
  local_rounds,  ///< each takes as many steps as it can; all synchronize in rounds, and agree what happens next
  asynchronous,  ///< each goes on by itself
};

/// What a scheme asks of a job.
struct SchemeTraits {
  Topology topology = Topology::allreduce;
  SyncMode sync_mode = SyncMode::lockstep;
  /// Replicas take steps of their own between two synchronizations, each with an optimizer of its own.
  bool local_steps = false;
  bool compresses = true;      ///< workers send gradients or deltas, which a codec may compress
  bool weighs_workers = true;  ///< a worker's part in an update depends on a weight
  bool balances = false;       ///< batch sizes follow the speeds of the devices
  /// Each worker trains on as much of the data as its device can, so that parts of it are as large as speeds, where these
  /// are known.
  bool parts_by_speed = false;
  /// The job goes on without a worker that is lost, where it has no server.
  bool regroups = false;
  /// No worker gets far ahead of the slowest.
  bool waits_for_slowest = false;
  /// What the optimizer's usual learning rate is divided by.
  double rate_divisor = 1;
};

/// The job, as far as what a scheme asks of it depends on it.
struct SchemeJob {
  std::uint32_t workers = 1;
  const OptionValues& options;
};

/// A configuration in which a scheme sets what was left open.
struct SchemeDefaults {
  std::uint32_t workers = 1;
  OptionValues& options;
  Optimizer& optimizer;       ///< of the workers
  bool has_momentum = false;  ///< likewise
  double momentum = 0;        ///< likewise
  bool skewed = false;        ///< the workers' parts of the data are not alike
  /// An empty function leaves learning rates open.
  const std::function<double(Optimizer)>& usual_learning_rate;
};

/// An optimizer of the server that is not the workers'.
struct ServerOptimizer {
  Optimizer optimizer = Optimizer::sgd;
  std::optional<double> learning_rate;
};

/// What a parameter server that keeps the model does with pushes.
struct ServerPolicy {
  ConsistencyOptions consistency{};
  std::optional<DelayCompensation::Options> compensation{};
  std::optional<ServerOptimizer> optimizer{};  ///< empty: that of `--optimizer`
};

/// What a scheme is made of, on one worker. What the job does not have is null.
struct SchemeContext {
  const OptionValues& options;
  Group& workers;
  ServerClient* server = nullptr;
  Reply server_start{};  ///< what the server replied when this worker began
  SharedModel* shared = nullptr;
  PacerClient* pacer = nullptr;
  Replica* replica = nullptr;  ///< this worker's, before its first step

  Averaging::Options
      averaging{};        ///< where workers take a mean: weights, algorithm, compression, server
  PushWeight weight{};    ///< of gradients that are not averaged by the workers themselves
  double momentum = 0;    ///< of the replica's optimizer; 0 where it has none
  bool nesterov = false;  ///< likewise
  std::uint32_t batch_size = 0;              ///< of this worker
  std::vector<std::uint32_t> batch_sizes{};  ///< of all
  std::uint32_t least_step = 1;              ///< samples that a step has to have
  Round done{};                              ///< rounds that came before, in a run that is resumed
  std::uint64_t samples_done = 0;            ///< by all workers, likewise
  OptimizerState outer_state{};              ///< likewise
  /// Of the replica's optimizer, after so many samples of the job.
  std::function<double(std::uint64_t samples)> learning_rate{};
  bool spare_core = false;  ///< this worker's host has a core that no worker computes on
  /// Whether every worker's host has none, and no device is emulated. All workers ask, or none.
  std::function<bool()> all_cores_taken{};
};

/// A scheme, declared in its own file: what `syncopate schemes` prints, its options, and what it asks of a job.
/// `scheme/registry.cpp` lists all of them.
struct SchemeSpec {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
  SchemeTraits traits = {};
  std::vector<OptionSpec> options = {};
  /// What the options change of the traits; null: nothing.
  void (*adapt)(SchemeTraits& traits, const SchemeJob& job) = nullptr;
  /// Refuses what cannot be. Errors: ConfigError. Null: nothing.
  void (*check)(const SchemeJob& job) = nullptr;
  /// Sets options that were left open; null: none are.
  void (*resolve)(SchemeDefaults& defaults) = nullptr;
  /// The fewest samples that a step of a worker may take, of its batch; null: all.
  std::uint32_t (*least_step)(const OptionValues& options, std::uint32_t batch_size) = nullptr;
  /// An advice, for a network that wants larger steps: ", or fewer --mini-batches".
  std::string_view way_to_larger_steps = "";
  /// Tells the pacer what the options say of it; null: workers are not paced.
  void (*pace)(const OptionValues& options, Pacer::Options& pacer) = nullptr;
  /// Of a job whose server keeps the model; null: pushes are applied as they come.
  ServerPolicy (*server_policy)(const OptionValues& options) = nullptr;
  std::unique_ptr<Scheme> (*make)(const SchemeContext& context) = nullptr;

  SchemeTraits traits_in(const SchemeJob& job) const {
    SchemeTraits adapted = traits;
    if (adapt != nullptr) {
      adapt(adapted, job);
    }
    return adapted;
  }
};

/// Where each gradient is an update of its own, 2 P − 1 updates share the place of one: the P − 1 of others that came
/// while it was computed, and the P − 1 that will not have seen it.
void count_asynchronous_updates(SchemeTraits& traits, const SchemeJob& job);

/// Errors: InternalError, where there is no server.
ServerClient& server_of(const SchemeContext& context);

/// Errors: ConfigError, which says what needs it, where there is no shared model.
SharedModel& shared_model_of(const SchemeContext& context, std::string_view what);

}  // namespace syncopate
