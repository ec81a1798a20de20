#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "config/option_values.hpp"
#include "data/split.hpp"
#include "job/spec/job_choices.hpp"
#include "job/spec/networks.hpp"
#include "optim/optimizer_spec.hpp"
#include "scheme/scheme_spec.hpp"

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

/// Everything that decides what a training job computes. Written to a run's folder as `config.toml`,
/// from which the same job runs again.
struct TrainConfig {
  // What is trained
  std::string scheme = "ssgd";
  const NetworkSpec* network = &network_named("lenet5");
  std::string data = "fashion-mnist";
  std::filesystem::path data_dir;  ///< empty: the dataset's default place
  std::string split = "iid";       ///< of the data over workers: iid, class, dirichlet:ALPHA
  bool split_by_class = false;     ///< another spelling of split class

  // By whom
  std::uint32_t workers = 0;      ///< 0: as many as the cluster has devices, else 1
  std::filesystem::path cluster;  ///< empty: real devices
  double time_scale = 1;          ///< stretches the times of the cluster's profiles
  bool virtual_time = false;      ///< runs in the simulator
  std::string device = "auto";    ///< auto, cpu, cuda, cuda:N; or one for each worker: cuda:0,cpu
  std::uint32_t threads = 1;      ///< per worker

  // How
  std::uint32_t batch_size = 64;  ///< per worker and step
  Optimizer optimizer = Optimizer::momentum;
  std::optional<double> learning_rate;  ///< empty until resolved: the optimizer's usual one
  double momentum = 0.9;
  double beta1 = 0.9;             ///< of adam, adamw: smoothing of the mean
  double beta2 = 0.999;           ///< likewise, of the mean square
  double alpha = 0.99;            ///< of rmsprop: smoothing of the mean square
  std::optional<double> epsilon;  ///< of the adaptive optimizers; empty: 1e-8, of adagrad 1e-10
  double weight_decay = 0;
  ScheduleShape schedule = ScheduleShape::constant;
  double schedule_step = 2;      ///< epochs between the drops of `step`
  double schedule_factor = 0.1;  ///< of a drop of `step`; the last rate of `cosine`, relative
  double warm_up = 0;            ///< epochs of linear warm-up before the schedule
  Init init = Init::broadcast;
  std::optional<Weights> weights;  ///< of workers in a mean; empty until resolved
  std::uint64_t seed = 1;

  // How replicas meet
  TransportKind transport = TransportKind::automatic;
  Compression compress;          ///< of what travels
  bool compress_remote = false;  ///< only between hosts
  OptionValues scheme_options;   ///< those that schemes declare (`SchemeSpec`)

  // What a parameter server does
  std::uint32_t servers = 0;  ///< shards; 0: one where the scheme has a server
  ServerProcess server_process = ServerProcess::own;

  // Until when
  double epochs = 5;
  std::optional<std::uint64_t> max_steps;
  std::optional<double> max_time;         ///< seconds of training clock
  std::optional<double> target_accuracy;  ///< in (0, 1]

  // What is kept
  Every eval_every{Every::Unit::epochs, 1};
  BatchNormStatistics batch_norm = BatchNormStatistics::running;  ///< of evaluations
  Every checkpoint_every{Every::Unit::epochs, 1};
  std::filesystem::path run_dir;  ///< empty: runs/<time>-<scheme>-<network>

  // When to give up
  double wait_limit = 60;  ///< seconds: the least that a wait for another node may take
  NanPolicy on_nan = NanPolicy::stop;

  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

/// How the data is divided among workers.
Split split_of(const TrainConfig& config);
/// Whether the workers' parts of the data are not alike.
bool parts_differ(const TrainConfig& config);
/// What the configuration's scheme asks of the job, as its options say.
SchemeTraits traits_of(const TrainConfig& config);
/// Whether the pacer says when workers synchronize.
bool is_paced(const TrainConfig& config);
/// Whether workers take a mean over all of them.
bool averages_workers(const TrainConfig& config);
/// Whether a job has a parameter server.
bool has_server(const TrainConfig& config);
/// Whether that server keeps the model, and does not only reduce.
bool server_keeps_model(const TrainConfig& config);
/// Whether what travels between its workers may be compressed.
bool may_compress(const TrainConfig& config);
/// What a server that keeps the model does with pushes.
ServerPolicy server_policy_of(const TrainConfig& config);
/// Whether its workers have to be on one host, started together.
bool meets_in_shared_memory(const TrainConfig& config);

/// Refuses fields that contradict each other. Each field by itself was checked when it was set
/// (`job/spec/config_fields.hpp`). Errors: ConfigError.
void check_config(const TrainConfig& config);

/// Refuses options given by hand that would have no effect, such as `momentum` with `adam`.
/// `given` holds names as on the command line. Errors: ConfigError.
void check_given(const TrainConfig& config, const std::set<std::string_view>& given);

/// What a configuration is completed from.
struct ConfigFacts {
  std::optional<std::uint32_t> devices;  ///< of the cluster file; empty: no emulated cluster
  /// What a launcher such as mpirun has started, workers and servers together; empty: nothing yet.
  std::optional<std::uint32_t> ranks = {};
  bool mpi = false;  ///< the ranks were started so that they come together by MPI
  /// An empty function leaves the learning rate open.
  std::function<double(Optimizer)> usual_learning_rate;
  std::string time;  ///< "20260131-235959": begins the name of a new run's folder
};

/// Fills what was left open: workers, servers, rates, run folder; and makes the paths of data and
/// cluster absolute, so that the result means the same anywhere on this machine. The result passes
/// `check_config`. Errors: ConfigError.
TrainConfig resolve_config(TrainConfig config, const ConfigFacts& facts);

}  // namespace syncopate
