#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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
#include "scheme/scheme.hpp"
#include "scheme/shared_model.hpp"
#include "server/consistency.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// The medium through which the workers of a scheme exchange replicas or gradients.
enum class Topology {
  none,           ///< there is one worker
  allreduce,      ///< collectives; or a server that only reduces (`--aggregate server`)
  server,         ///< a parameter server, which keeps the model
  shared_memory,  ///< of one host
};

/// How the steps of a job's workers relate to each other.
enum class SyncMode {
  lockstep,      ///< all are at the same step, and synchronize after steps that all know
  local_rounds,  ///< each takes as many steps as it can; all synchronize in rounds
  asynchronous,  ///< each continues without the others
};

/// When a worker gets the model that a server or shared memory keeps.
enum class Pull {
  none,        ///< neither keeps a model
  each_step,   ///< with every step
  each_round,  ///< with the mini-batches of a round
  some_steps,  ///< after several steps of its own
};

/// The demands of a scheme on a job.
struct SchemeTraits {
  Topology topology = Topology::allreduce;
  SyncMode sync_mode = SyncMode::lockstep;
  /// Replicas take local steps between two rounds, each with its own optimizer.
  bool local_steps = false;
  bool compresses = true;      ///< workers send gradients or deltas, which a codec may compress
  bool weighs_workers = true;  ///< a weight scales a worker's contribution to an update
  bool balances = false;       ///< batch sizes follow the speeds of the devices
  /// A step may take any part of a mini-batch: a global batch is a mini-batch of each worker, of
  /// which its steps take parts by its measured speed.
  bool divides_batches = false;
  /// Workers measure below which number of samples their devices become slow, as the least part.
  bool measures_batches = false;
  /// Each worker trains on as much data as its device can, so the parts of the data are
  /// proportional to the speeds of the devices, where these are known.
  bool parts_by_speed = false;
  /// The job continues without a failed worker, where it has no server.
  bool regroups = false;
  /// No worker gets far ahead of the slowest.
  bool waits_for_slowest = false;
  Pull pull = Pull::none;
  /// An asynchronous step may wait until other workers have taken theirs.
  bool waits_for_steps = false;
  /// A round only replaces gradients, or parameters, by their mean over the workers.
  bool takes_means = false;
  /// Divides the optimizer's default learning rate.
  double rate_divisor = 1;
};

/// The weight of a gradient that is an update of its own, or that a server averages with others.
/// Either the weight is proportional to the samples of the gradient, so every sample counts the
/// same, or it is 1.
struct PushWeight {
  double unit = 0;  ///< samples that weigh 1; 0: every gradient weighs 1

  float of(std::uint64_t samples) const {
    return unit > 0 ? static_cast<float>(static_cast<double>(samples) / unit) : 1;
  }
};

/// The properties of a job on which a scheme's demands depend.
struct SchemeJob {
  std::uint32_t workers = 1;
  const OptionValues& options;
};

/// In steps of fewer samples, BatchNorm's mean and variance are poor estimates of those of the
/// data.
constexpr std::uint32_t batch_norm_samples = 16;

/// The samples of a step of all workers together, by default: 64, or 8 for each worker if that is
/// more; `batch_norm_samples` in a network with BatchNorm.
constexpr std::uint32_t usual_global_batch(std::uint32_t workers, bool has_batch_norm) {
  return std::max(64U, (has_batch_norm ? batch_norm_samples : 8U) * workers);
}

/// A configuration in which a scheme sets options that the user left open.
struct SchemeDefaults {
  std::uint32_t workers = 1;
  OptionValues& options;
  Optimizer& optimizer;       ///< of the workers
  bool has_momentum = false;  ///< of the workers' optimizer
  double momentum = 0;        ///< of the workers' optimizer
  bool skewed = false;        ///< the workers' parts of the data differ
  bool compresses = false;    ///< a codec makes what they send smaller
  double epochs = 0;          ///< of the job
  std::optional<double>& warm_up;
  /// The samples of all workers; open if it is empty and `has_batch` is false.
  std::optional<std::uint32_t>& global_batch;
  bool has_batch = false;       ///< the user has given a batch of each worker
  bool has_batch_norm = false;  ///< the network has layers whose statistics need samples
  /// An empty function leaves learning rates open.
  const std::function<double(Optimizer)>& usual_learning_rate;
};

/// The server's optimizer, where it differs from the workers'.
struct ServerOptimizer {
  Optimizer optimizer = Optimizer::sgd;
  std::optional<double> learning_rate;
};

/// How a parameter server that keeps the model handles pushes.
struct ServerPolicy {
  ConsistencyOptions consistency{};
  std::optional<DelayCompensation::Options> compensation{};
  /// Drops a gradient if the model has had this many updates or more since its worker pulled.
  std::optional<std::uint64_t> max_delay{};
  std::optional<ServerOptimizer> optimizer{};  ///< empty: that of `--optimizer`
};

/// The objects and settings from which one worker makes a scheme. A pointer is null where the job
/// has no such object.
struct SchemeContext {
  const OptionValues& options;
  Group& workers;
  ServerClient* server = nullptr;
  Reply server_start{};  ///< the server's reply when this worker began
  SharedModel* shared = nullptr;
  PacerClient* pacer = nullptr;
  Replica* replica = nullptr;  ///< this worker's, before its first step

  /// How means over workers are computed: weights, algorithm, compression, server.
  Averaging::Options averaging{};
  PushWeight weight{};           ///< of gradients that the workers do not average themselves
  double momentum = 0;           ///< of the replica's optimizer; 0 where it has none
  bool nesterov = false;         ///< of the replica's optimizer
  std::uint32_t batch_size = 0;  ///< of this worker
  std::uint32_t least_part = 0;  ///< of a global batch that the pacer divides; 0: there is none
  std::vector<std::uint32_t> batch_sizes{};      ///< of all workers
  std::vector<std::uint32_t> max_batch_sizes{};  ///< of all workers; empty: any
  std::uint32_t least_step = 1;                  ///< the fewest samples of a step
  Round done{};                                  ///< rounds before this run, where it is resumed
  std::uint64_t samples_done = 0;                ///< samples of all workers before this run
  OptimizerState outer_state{};                  ///< of the outer optimizer, of a resumed run
  /// The learning rate of the replica's optimizer after `samples` samples of the job.
  std::function<double(std::uint64_t samples)> learning_rate{};
  bool spare_core = false;  ///< this worker's host has a core that no worker computes on
  /// True if every worker's host has no spare core, and no device is emulated. A collective: all
  /// workers call it, or none.
  std::function<bool()> all_cores_taken{};
};

/// A scheme, declared in its own file: the text that `syncopate schemes` prints, its options, and
/// its demands on a job.
struct SchemeSpec {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
  /// The colour of the scheme in figures, such as "#0072B2". The colours differ from each other,
  /// and from greys, to people with any kind of colour blindness; some are those of Okabe and Ito.
  /// Empty: figures choose a colour that few others have.
  std::string_view colour = {};
  SchemeTraits traits = {};
  std::vector<OptionSpec> options = {};
  /// Adapts the traits to the options; null: the traits are fixed.
  void (*adapt)(SchemeTraits& traits, const SchemeJob& job) = nullptr;
  /// Refuses impossible options. Errors: ConfigError. Null: all are possible.
  void (*check)(const SchemeJob& job) = nullptr;
  /// Sets options that were left open; null: none are.
  void (*resolve)(SchemeDefaults& defaults) = nullptr;
  /// The fewest samples of a batch that a step of a worker may take; null: the whole batch.
  std::uint32_t (*least_step)(const OptionValues& options, std::uint32_t batch_size) = nullptr;
  /// Advice for a network that needs larger steps: ", or fewer --mini-batches".
  std::string_view way_to_larger_steps = "";
  /// Sets the pacer's options; null: workers are not paced.
  void (*pace)(const OptionValues& options, Pacer::Options& pacer) = nullptr;
  /// The policy of a server that keeps the model; null: it applies each push as it arrives.
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

/// Every scheme of `scheme/schemes.inc`, in the order of help texts.
std::span<const SchemeSpec* const> all_schemes();

/// Errors: ConfigError if the name is unknown.
const SchemeSpec& scheme_named(std::string_view name);

/// The scheme of one device without communication. A comparison takes its upper bound from it.
const SchemeSpec& sequential_scheme();
/// The scheme relative to which the speed-up of other schemes is given.
const SchemeSpec& baseline_scheme();
/// The scheme that is meant for devices of unequal speed.
const SchemeSpec& paced_scheme();

/// The option that a scheme declares by this name, or null.
const OptionSpec* find_option(const SchemeSpec& scheme, std::string_view name);

/// Every option that some scheme declares, once.
std::vector<OptionSpec> scheme_options();

/// The schemes that declare an option: "local-sgd, diloco or easgd".
std::string schemes_with(std::string_view option);

/// Sets the learning rate's divisor to 2 P − 1 for schemes in which each gradient is an update of
/// its own. That many updates share the work of one: the P − 1 updates of other workers that arrive
/// while a gradient is computed, the gradient itself, and the P − 1 updates that do not yet see it.
void count_asynchronous_updates(SchemeTraits& traits, const SchemeJob& job);

/// Errors: InternalError if the context has no server.
ServerClient& server_of(const SchemeContext& context);

/// Errors: ConfigError if the context has no shared model; `what` names the feature that needs it.
SharedModel& shared_model_of(const SchemeContext& context, std::string_view what);

}  // namespace syncopate
