#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "config/option_values.hpp"
#include "data/augmentation.hpp"
#include "data/split.hpp"
#include "optim/optimizer_spec.hpp"
#include "optim/schedule.hpp"
#include "scheme/scheme_spec.hpp"
#include "spec/networks.hpp"

namespace syncopate {

/// A period of training: `200 steps`, `0.5 epochs`, `10 s` of training clock, or `never`.
struct Every {
  enum class Unit { never, steps, epochs, seconds };
  Unit unit = Unit::never;
  double amount = 0;

  /// Reads "200steps", "1 epoch", "0.5epochs", "10s", "never". Errors: ConfigError.
  static Every parse(std::string_view text);
  std::string to_string() const;
  friend bool operator==(const Every&, const Every&) = default;
};

/// The samples of a mini-batch: the same of every worker, or those of each one.
class BatchSizes {
 public:
  BatchSizes(std::uint32_t of_each)  // NOLINT(google-explicit-constructor): a number is the usual
      : sizes_{of_each} {}
  /// `by_rank` has at least two sizes.
  explicit BatchSizes(std::vector<std::uint32_t> by_rank) : sizes_(std::move(by_rank)) {}

  /// The number of workers that have a size of their own; 0: one size is that of every worker.
  std::size_t listed() const { return sizes_.size() > 1 ? sizes_.size() : 0; }
  std::uint32_t of(std::size_t rank) const { return sizes_[listed() > 0 ? rank : 0]; }
  std::span<const std::uint32_t> sizes() const { return sizes_; }

  friend bool operator==(const BatchSizes&, const BatchSizes&) = default;

 private:
  std::vector<std::uint32_t> sizes_;
};

/// The initial parameters.
enum class Init {
  broadcast,  ///< all replicas start with the parameters of rank 0
  /// Each replica draws its own. All start with the sum over √P, which has the variance of a draw.
  independent,
};
constexpr auto names_of(Init) {
  return std::to_array<Named<Init>>(
      {{"broadcast", Init::broadcast}, {"independent", Init::independent}});
}

/// The transport of messages between nodes.
enum class TransportKind {
  automatic,
#define TRANSPORT(name) name,
#include "transport/transports.inc"
#undef TRANSPORT
};
constexpr auto names_of(TransportKind) {
  return std::to_array<Named<TransportKind>>({
      {"auto", TransportKind::automatic},
#define TRANSPORT(name) {#name, TransportKind::name},
#include "transport/transports.inc"
#undef TRANSPORT
  });
}

/// The processes in which the shards of a parameter server run.
enum class ServerProcess {
  own,     ///< each shard in a separate process
  shared,  ///< in the coordinator's process
};
constexpr auto names_of(ServerProcess) {
  return std::to_array<Named<ServerProcess>>(
      {{"own", ServerProcess::own}, {"shared", ServerProcess::shared}});
}

/// The statistics of BatchNorm that an evaluation reads.
enum class BatchNormStatistics {
  running,     ///< the running statistics of the replica
  recomputed,  ///< recomputed over training samples
};
constexpr auto names_of(BatchNormStatistics) {
  return std::to_array<Named<BatchNormStatistics>>(
      {{"running", BatchNormStatistics::running}, {"recomputed", BatchNormStatistics::recomputed}});
}

/// The reaction to a gradient that is not finite.
enum class NanPolicy {
  stop,  ///< the job ends
  skip,  ///< the worker drops the batch
};
constexpr auto names_of(NanPolicy) {
  return std::to_array<Named<NanPolicy>>({{"stop", NanPolicy::stop}, {"skip", NanPolicy::skip}});
}

/// How much the trace of a run shows.
enum class TraceDetail {
  off,     ///< no trace is written
  rounds,  ///< the phases of each round
  steps,   ///< the phases of each step
};
constexpr auto names_of(TraceDetail) {
  return std::to_array<Named<TraceDetail>>(
      {{"off", TraceDetail::off}, {"rounds", TraceDetail::rounds}, {"steps", TraceDetail::steps}});
}

/// The epochs of a job whose programs' own loops decide when it ends: more than any job takes.
inline constexpr double open_end = 1e9;

/// Samples per worker and step by default.
inline constexpr std::uint32_t usual_batch = 64;
/// The least part of a global batch: two samples have a variance, which BatchNorm needs.
inline constexpr std::uint32_t least_part_of_batch = 2;

/// All settings that determine the computation of a training job. Written to a run's folder as
/// `config.toml`, from which the same job runs again.
struct TrainConfig {
  // Model and data
  std::string scheme = "ssgd";
  NetworkChoice network = &network_named("lenet5");
  std::string data = "fashion-mnist";
  std::filesystem::path data_dir;  ///< empty: the dataset's default folder
  Split split;                     ///< of the data over workers
  bool split_by_class = false;     ///< another spelling of split class
  std::vector<double> shares;      ///< of workers in the data; empty: by batch size or speed
  std::optional<std::uint32_t> image_size;    ///< of a folder of images; empty: the first one's
  std::optional<std::uint32_t> resize;        ///< side of images on the device; empty: as they are
  Augmentation augment = Augmentation::none;  ///< of training images

  // Workers and devices
  std::uint32_t workers = 0;      ///< 0: as many as the cluster has devices, else 1
  std::filesystem::path cluster;  ///< empty: real devices
  double time_scale = 1;          ///< stretches the times of the cluster's profiles
  bool virtual_time = false;      ///< runs in the simulator
  std::string device = "auto";    ///< auto, cpu, cuda, cuda:N; or one for each worker: cuda:0,cpu
  std::uint32_t threads = 1;      ///< per worker
  Precision precision = Precision::float32;

  // Optimization
  std::optional<BatchSizes> batch_size;       ///< per step; empty: `usual_batch`, or where there
                                              ///< is a global batch
  std::optional<std::uint32_t> global_batch;  ///< of all workers together, in parts by speed
  std::optional<BatchSizes> max_batch_size;   ///< per step; empty: any
  Optimizer optimizer = Optimizer::momentum;
  std::optional<double> learning_rate;  ///< empty until resolved: the optimizer's usual one
  double momentum = 0.9;
  double beta1 = 0.9;             ///< of adam, adamw: smoothing of the mean
  double beta2 = 0.999;           ///< of adam, adamw: smoothing of the mean square
  double alpha = 0.99;            ///< of rmsprop: smoothing of the mean square
  std::optional<double> epsilon;  ///< of the adaptive optimizers; empty: 1e-8, of adagrad 1e-10
  double weight_decay = 0;
  std::optional<double> clip_norm;  ///< the greatest norm of a gradient; empty: any
  ScheduleShape schedule = ScheduleShape::constant;
  double schedule_step = 2;      ///< epochs between the drops of `step`
  double schedule_factor = 0.1;  ///< of a drop of `step`; the last rate of `cosine`, relative
  /// Epochs of linear warm-up before the schedule; empty until resolved.
  std::optional<double> warm_up;
  Init init = Init::broadcast;
  WeightInit weight_init = WeightInit::standard;
  std::optional<Weights> weights;  ///< of workers in a mean; empty until resolved
  std::uint64_t seed = 1;

  // Synchronization
  TransportKind transport = TransportKind::automatic;
  OptionValues scheme_options;  ///< the options that schemes declare (`SchemeSpec`)

  // Compression
  Compression compress;          ///< of gradients and deltas
  bool compress_remote = false;  ///< compress only between hosts

  // Parameter server
  std::uint32_t servers = 0;  ///< shards; 0: one if the scheme has a server
  ServerProcess server_process = ServerProcess::own;

  // Stopping
  double epochs = 5;
  std::optional<std::uint64_t> max_steps;
  std::optional<double> max_time;         ///< seconds of training clock
  std::optional<double> target_accuracy;  ///< in (0, 1]

  // Outputs
  Every eval_every{Every::Unit::epochs, 1};
  BatchNormStatistics batch_norm = BatchNormStatistics::running;  ///< of evaluations
  Every checkpoint_every{Every::Unit::epochs, 1};
  TraceDetail trace = TraceDetail::rounds;
  std::filesystem::path run_dir;  ///< empty: runs/<time>-<scheme>-<network>

  // Failure handling
  double wait_limit = 90;  ///< seconds: the minimum time limit of a wait for another node
  NanPolicy on_nan = NanPolicy::stop;

  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

/// The split of the data that `split` and `split_by_class` together specify.
Split split_of(const TrainConfig& config);
/// True if the workers' parts of the data differ in their distribution.
bool parts_differ(const TrainConfig& config);
/// The job as its scheme sees it.
SchemeJob scheme_job_of(const TrainConfig& config);
/// The traits of the configuration's scheme under its options.
SchemeTraits traits_of(const TrainConfig& config);
/// True if the pacer decides when workers synchronize.
bool is_paced(const TrainConfig& config);
/// True if workers take a mean over all of them.
bool averages_workers(const TrainConfig& config);
/// True if the options require MPI: its transport, or its allreduce, which needs that.
bool requires_mpi(const TrainConfig& config);
/// True if the job has a parameter server.
bool has_server(const TrainConfig& config);
/// True if a parameter server holds the model, instead of only reducing.
bool server_keeps_model(const TrainConfig& config);
/// True if workers send values that a codec may compress.
bool may_compress(const TrainConfig& config);
/// The policy of a server that holds the model.
ServerPolicy server_policy_of(const TrainConfig& config);
/// True if all workers must run on one host, and start together.
bool uses_shared_model(const TrainConfig& config);
/// The schedule of the workers' learning rate. Errors: ConfigError; InternalError, before the rate
/// is resolved.
Schedule schedule_of(const TrainConfig& config);

/// Refuses options that contradict each other. `set_field` has checked each option by itself.
/// Errors: ConfigError.
void check_config(const TrainConfig& config);

/// Refuses a `split` that contradicts `split_by_class`. Call it only if the user or a file gave
/// `split`. Errors: ConfigError.
void expect_one_split(const TrainConfig& config);

/// Refuses given options without an effect, such as `momentum` with `adam`, and two splits. `given`
/// holds names as on the command line. Errors: ConfigError.
void check_given(const TrainConfig& config, const std::set<std::string_view>& given);

/// The facts with which `resolve_config` completes a configuration.
struct ConfigFacts {
  std::optional<std::uint32_t> devices;  ///< of the cluster file; empty: no emulated cluster
  /// The processes that a launcher such as mpirun has started, workers and servers together; empty:
  /// none yet.
  std::optional<std::uint32_t> ranks = {};
  bool mpi = false;          ///< the ranks can connect by MPI
  bool of_programs = false;  ///< that have loops of their own
  /// If the function is empty, the learning rate stays unset.
  std::function<double(Optimizer)> usual_learning_rate;
  std::string time;  ///< "20260131-235959": the beginning of a new run folder's name
};

/// Sets options that are unset: workers, servers, rates, run folder. Makes the paths of data and
/// cluster absolute, so that the result means the same in any folder of this machine. The result
/// passes `check_config`. Errors: ConfigError.
TrainConfig resolve_config(TrainConfig config, const ConfigFacts& facts);

/// `TrainConfig::device` names a device for all workers (`auto`, `cpu`, `cuda`, `cuda:N`), or lists
/// one for each by rank: "cuda:0,cpu".

/// True if `text` is a device other than `auto`, `cpu` and `cuda`, or a list of devices.
bool is_device_list(std::string_view text);

/// Errors: ConfigError if a list has another length than the number of workers.
void check_devices(const TrainConfig& config);

/// Refuses shares of the data whose number differs from that of workers, and shares without an
/// effect. Errors: ConfigError.
void check_shares(const TrainConfig& config);

/// The device of one worker. Errors: ConfigError if a list has no entry for it.
std::string device_of_worker(const TrainConfig& config, std::uint32_t rank);

}  // namespace syncopate
