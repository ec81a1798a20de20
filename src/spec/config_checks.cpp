#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "codec/momentum_correction.hpp"
#include "config/text.hpp"
#include "data/dataset.hpp"
#include "scheme/scheme_options.hpp"
#include "scheme/scheme_spec.hpp"
#include "spec/batch_checks.hpp"
#include "spec/config.hpp"
#include "spec/network_file.hpp"

namespace syncopate {
namespace {

bool chooses_aggregate(const TrainConfig& config) {
  return find_option(scheme_named(config.scheme), option::aggregate.name) != nullptr;
}

bool weighs_workers(const TrainConfig& config) {
  return traits_of(config).weighs_workers;
}

/// Sets the scheme's own options that are unset.
void resolve_scheme(TrainConfig& config, const ConfigFacts& facts) {
  const SchemeSpec& scheme = scheme_named(config.scheme);
  if (scheme.resolve == nullptr) {
    return;
  }
  SchemeDefaults defaults{.workers = config.workers,
                          .options = config.scheme_options,
                          .optimizer = config.optimizer,
                          .has_momentum = optimizer_spec(config.optimizer).reads_momentum,
                          .momentum = config.momentum,
                          .skewed = parts_differ(config),
                          .compresses = static_cast<bool>(config.compress),
                          .epochs = config.epochs,
                          .warm_up = config.warm_up,
                          .global_batch = config.global_batch,
                          .has_batch = config.batch_size.has_value(),
                          .has_batch_norm = has_batch_norm(*config.network),
                          .usual_learning_rate = facts.usual_learning_rate};
  scheme.resolve(defaults);
}

/// True if an optimizer of the job reads a hyperparameter: the workers' optimizer, or the server's
/// if it has a separate one. The scheme's options may still be unset.
bool some_optimizer(TrainConfig config, bool OptimizerSpec::*reads) {
  resolve_scheme(config, {});
  const auto of_server = server_policy_of(config).optimizer;
  return optimizer_spec(config.optimizer).*reads ||
         (of_server && optimizer_spec(of_server->optimizer).*reads);
}

bool evaluates_batch_norm(const TrainConfig& config) {
  return config.eval_every.unit != Every::Unit::never && has_batch_norm(*config.network);
}

/// True for a built-in network; other networks draw their own weights.
bool has_built_in_network(const TrainConfig& config) {
  return std::ranges::any_of(
      all_networks(), [&](const NetworkSpec& network) { return &network == &*config.network; });
}

constexpr std::string_view compressible =
    "ssgd, local-sgd, diloco, esync or nbssgd by an allreduce, asgd, dc-asgd, ssp, backup or "
    "downpour";

/// An option that has an effect only with some values of another option.
struct Dependence {
  std::string_view option;
  std::function<bool(const TrainConfig&)> has_effect;
  std::string needs;
};

Dependence read_by_optimizers(std::string_view option, bool OptimizerSpec::*reads) {
  std::vector<std::string_view> names;
  for (const auto& [name, optimizer] : names_of(Optimizer{})) {
    if (optimizer_spec(optimizer).*reads) {
      names.push_back(name);
    }
  }
  return {option, [reads](const TrainConfig& config) { return some_optimizer(config, reads); },
          "--optimizer " + alternatives(names)};
}

std::vector<std::string_view> datasets_of_files() {
  std::vector<std::string_view> names;
  std::ranges::copy_if(dataset_names(), std::back_inserter(names), reads_files);
  return names;
}

std::string networks_with_batch_norm() {
  std::vector<std::string_view> names;
  for (const NetworkSpec& network : all_networks()) {
    if (network.has_batch_norm) {
      names.push_back(network.name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Dependence> dependences() {
  using Config = TrainConfig;
  return {
      read_by_optimizers("momentum", &OptimizerSpec::reads_momentum),
      read_by_optimizers("beta1", &OptimizerSpec::reads_betas),
      read_by_optimizers("beta2", &OptimizerSpec::reads_betas),
      read_by_optimizers("alpha", &OptimizerSpec::reads_alpha),
      read_by_optimizers("epsilon", &OptimizerSpec::reads_epsilon),
      {"batch-norm", evaluates_batch_norm,
       fmt::format("a network with BatchNorm ({}, or a file), and evaluations of it",
                   networks_with_batch_norm())},
      {"weight-init", has_built_in_network, "a built-in network"},
      {"schedule-step", [](const Config& config) { return config.schedule == ScheduleShape::step; },
       "--schedule step"},
      {"schedule-factor",
       [](const Config& config) { return config.schedule != ScheduleShape::constant; },
       "--schedule step or cosine"},
      {"time-scale", [](const Config& config) { return !config.cluster.empty(); }, "--cluster"},
      {"server-process", has_server, "a scheme that has a server"},
      {"weights", weighs_workers, "a scheme that weighs workers, which local and easgd do not"},
      {"compress", may_compress, std::string(compressible)},
      {"compress-remote", [](const Config& config) { return static_cast<bool>(config.compress); },
       "--compress"},
      {"image-size", [](const Config& config) { return is_data_folder(config.data); },
       "--data DIR/, the path of a folder"},
      {"data-dir", [](const Config& config) { return reads_files(config.data); },
       "--data " + alternatives(datasets_of_files())},
  };
}

/// Errors: ConfigError if the configuration's scheme does not read an option of schemes, or its
/// other options make it irrelevant.
void check_has_effect(const TrainConfig& config, const OptionSpec& option) {
  const OptionSpec* const declared = find_option(scheme_named(config.scheme), option.name);
  const bool has_effect = declared != nullptr && (declared->has_effect == nullptr ||
                                                  declared->has_effect(config.scheme_options));
  if (!has_effect) {
    throw ConfigError(fmt::format("--{} has no effect without --scheme {}{}", option.name,
                                  schemes_with(option.name),
                                  (declared ? *declared : option).needs));
  }
}

/// Errors: ConfigError if the scheme sends nothing that a codec can compress, or --aggregate
/// names a way to reduce.
void check_compression(const TrainConfig& config) {
  if (!config.compress) {
    return;
  }
  if (!may_compress(config)) {
    throw ConfigError(
        fmt::format("compress {} needs a scheme whose workers send gradients or deltas: {}; found "
                    "scheme {}; leave out compress",
                    to_string(config.compress), compressible, config.scheme));
  }
  if (averages_workers(config) && !config.scheme_options[option::aggregate].is_automatic()) {
    throw ConfigError(fmt::format(
        "compress {} has its own allreduce, found aggregate {}; leave out one of them",
        to_string(config.compress), name_of_value(config.scheme_options[option::aggregate])));
  }
}

std::string_view advice_on_servers(const TrainConfig& config) {
  return chooses_aggregate(config) ? ", or choose --aggregate server" : "";
}

std::uint32_t resolve_servers(const TrainConfig& config) {
  if (has_server(config)) {
    return std::max<std::uint32_t>(1, config.servers);
  }
  if (config.servers > 0) {
    throw ConfigError(fmt::format("scheme {} has no parameter server; leave out servers{}",
                                  config.scheme, advice_on_servers(config)));
  }
  return 0;
}

void resolve_learning_rate(TrainConfig& config, const ConfigFacts& facts) {
  if (facts.usual_learning_rate && !config.learning_rate) {
    const double usual = facts.usual_learning_rate(config.optimizer);
    config.learning_rate = usual / traits_of(config).rate_divisor;
  }
}

/// "5 ranks, 1 of them a server"
std::string described(std::uint32_t ranks, std::uint32_t servers) {
  return servers == 0 ? fmt::format("{} ranks", ranks)
                      : fmt::format("{} ranks, {} of them {}", ranks, servers,
                                    servers == 1 ? "a server" : "servers");
}

/// The number of workers that the cluster file or the launcher determines. Empty if neither
/// exists.
std::optional<std::uint32_t> settled_workers(const TrainConfig& config, const ConfigFacts& facts) {
  if (!facts.ranks) {
    return facts.devices;
  }
  if (*facts.ranks <= config.servers) {
    throw ConfigError(fmt::format("{} were started, which leaves none for a worker; start more",
                                  described(*facts.ranks, config.servers)));
  }
  const std::uint32_t workers = *facts.ranks - config.servers;
  if (facts.devices && *facts.devices != workers) {
    throw ConfigError(fmt::format("{} were started, but {} has {} devices; start {}",
                                  described(*facts.ranks, config.servers), config.cluster.string(),
                                  *facts.devices, *facts.devices + config.servers));
  }
  return workers;
}

/// Order: after the number of servers is known.
std::uint32_t resolve_workers(const TrainConfig& config, const ConfigFacts& facts) {
  const auto settled = settled_workers(config, facts);
  if (!settled) {
    return config.workers == 0 ? 1 : config.workers;
  }
  if (config.workers != 0 && config.workers != *settled) {
    throw ConfigError(
        facts.ranks
            ? fmt::format("{} workers do not fit {}; leave out workers", config.workers,
                          described(*facts.ranks, config.servers))
            : fmt::format("{} workers do not fit {}, which has {} devices; leave out workers",
                          config.workers, config.cluster.string(), *facts.devices));
  }
  return *settled;
}

/// Errors: ConfigError if the workers cannot reduce by the given algorithm.
void check_aggregate(const TrainConfig& config) {
  if (!averages_workers(config)) {
    return;
  }
  if (const auto* const reducer = config.scheme_options[option::aggregate].reducer) {
    check_request(*reducer, config.workers, name_of_value(config.transport));
  }
}

/// Errors: ConfigError if the job has no program with a process group of its own.
void expect_program(const TrainConfig& config, const ConfigFacts& facts) {
  const auto* const reducer = config.scheme_options[option::aggregate].reducer;
  if (reducer != nullptr && reducer->of_program && !facts.of_programs) {
    throw ConfigError(
        fmt::format("aggregate {} is for scripts that have a process group; choose another or auto",
                    reducer->name));
  }
}

/// Errors: ConfigError if the transport is MPI but no MPI launcher has started the ranks.
void resolve_transport(TrainConfig& config, const ConfigFacts& facts) {
  if (config.transport == TransportKind::automatic) {
    config.transport = facts.mpi || requires_mpi(config) ? TransportKind::mpi : TransportKind::shm;
  }
  if (config.transport == TransportKind::mpi && !facts.mpi) {
    throw ConfigError(
        "transport mpi, which aggregate mpi requires, needs an MPI launcher: start the job by "
        "mpirun, or by srun with --mpi=pmix or --mpi=pmi2");
  }
}

/// Sets the options that depend on the split, once the number of workers is known. If parts differ,
/// the weight of a worker is its share of the data.
void resolve_split(TrainConfig& config) {
  config.split = split_of(config);
  config.split_by_class = false;
  if (!config.weights) {
    const bool by_data = parts_differ(config) && averages_workers(config);
    config.weights = by_data ? Weights::data : Weights::samples;
  }
}

/// Errors: ConfigError if a split is given twice, or if the scheme does not read the weights.
void check_split(const TrainConfig& config) {
  if (config.split.kind == Split::Kind::dirichlet) {  // a split that is not given is iid
    expect_one_split(config);
  }
  if (config.weights == Weights::data && !averages_workers(config)) {
    throw ConfigError(fmt::format(
        "weights data needs a scheme that takes a mean over all workers: ssgd, local-sgd, diloco, "
        "esync or nbssgd without commit racy; found scheme {}; choose weights samples or uniform",
        config.scheme));
  }
}

/// Checks absolute paths: a valid relative path may be too long below the current folder. Errors:
/// ConfigError.
void check_whole_paths(const TrainConfig& config) {
  for (const auto* const path : {&config.run_dir, &config.cluster, &config.data_dir}) {
    if (!path->empty()) {
      check_path(std::filesystem::absolute(*path).native());
    }
  }
  if (is_data_folder(config.data)) {
    check_path(std::filesystem::absolute(config.data).native());
  }
}

/// Errors: ConfigError. A program, a cluster file or a launcher may have set the numbers.
void check_counts(const TrainConfig& config) {
  if (config.workers > most_workers || config.servers > most_workers) {
    throw ConfigError(
        fmt::format("expected at most {} workers and {} servers, found {} and {}; start fewer",
                    most_workers, most_workers, config.workers, config.servers));
  }
}

std::filesystem::path anchored(const std::filesystem::path& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal();
}

/// Errors: ConfigError if the network's file is missing or its path is too long.
void resolve_network(TrainConfig& config) {
  if (!config.network->file.empty()) {
    const std::filesystem::path file = anchored(config.network->file);
    check_path(file.native());
    check_network_file(file);
    config.network = NetworkChoice::of(file.native());
  }
}

/// Errors: ConfigError if every worker would start with the same parameters: divided by √P, their
/// sum does not have the variance of a draw.
void check_network(const TrainConfig& config) {
  if (!config.network->file.empty() && config.init == Init::independent) {
    throw ConfigError(
        fmt::format("init independent needs a network that draws its own parameters, found those "
                    "of the file {}; choose init broadcast",
                    config.network->file));
  }
}

}  // namespace

void check_shares(const TrainConfig& config) {
  const std::size_t shares = config.shares.size();
  if (shares > 0 && split_of(config).is_skewed()) {
    throw ConfigError(fmt::format(
        "shares {} need split iid, found split {}, which divides the data by class; leave out one "
        "of them",
        shares_text(config.shares), to_string(split_of(config))));
  }
  if (shares > 0 && shares != config.workers) {
    throw ConfigError(
        fmt::format("shares {} lists {} share{} for {} worker{}; list one for each worker",
                    shares_text(config.shares), shares, shares == 1 ? "" : "s", config.workers,
                    config.workers == 1 ? "" : "s"));
  }
}

/// Errors: ConfigError if the clipped gradients are those that sums of velocities make, which with
/// few bits change far more from step to step than gradients do.
void check_clipping(const TrainConfig& config) {
  const SchemeTraits traits = traits_of(config);
  const bool sends_velocities = traits.topology == Topology::allreduce && !traits.local_steps &&
                                optimizer_spec(config.optimizer).reads_momentum &&
                                config.momentum > 0 && gradient_ahead(config.compress) > 0;
  if (config.clip_norm && sends_velocities) {
    throw ConfigError(fmt::format(
        "--clip-norm limits gradients, and with --compress {} and a momentum workers of {} send "
        "velocities: choose --compress int8, --optimizer sgd, or esync",
        to_string(config.compress), config.scheme));
  }
}

void check_config(const TrainConfig& config) {
  check_counts(config);
  check_batches(config);
  check_clipping(config);
  const SchemeSpec& scheme = scheme_named(config.scheme);
  if (scheme.check != nullptr) {
    scheme.check(scheme_job_of(config));
  }
  if (config.virtual_time && config.cluster.empty()) {
    throw ConfigError(
        "virtual time needs a cluster file, which determines the time of a step; name one by "
        "--cluster");
  }
  check_network(config);
  check_devices(config);
  check_split(config);
  check_shares(config);
  check_aggregate(config);
  check_compression(config);
  if (config.target_accuracy && config.eval_every.unit == Every::Unit::never) {
    throw ConfigError("a target accuracy needs evaluations, but eval-every is never");
  }
  if (optimizer_spec(config.optimizer).looks_ahead && config.momentum == 0) {
    throw ConfigError(fmt::format("optimizer {} needs a momentum above 0; without one it is sgd",
                                  name_of_value(config.optimizer)));
  }
  if (config.warm_up > config.epochs) {
    throw ConfigError(fmt::format("a warm-up of {} epochs does not fit into {} epochs of training",
                                  *config.warm_up, config.epochs));
  }
}

void expect_one_split(const TrainConfig& config) {
  if (config.split_by_class && config.split.kind != Split::Kind::by_class) {
    throw ConfigError(fmt::format(
        "split {} contradicts split-by-class, which is split class; leave one of them out",
        to_string(config.split)));
  }
}

void check_given(const TrainConfig& config, const std::set<std::string_view>& given) {
  if (given.contains("split")) {
    expect_one_split(config);
  }
  if (given.contains("batch-size") && given.contains("max-batch-size")) {
    expect_batches_within_limits(config);
  }
  for (const OptionSpec& option : scheme_options()) {
    if (given.contains(option.name)) {
      check_has_effect(config, option);
    }
  }
  for (const Dependence& dependence : dependences()) {
    if (given.contains(dependence.option) && !dependence.has_effect(config)) {
      throw ConfigError(
          fmt::format("--{} has no effect without {}", dependence.option, dependence.needs));
    }
  }
}

TrainConfig resolve_config(TrainConfig config, const ConfigFacts& facts) {
  check_split(config);
  resolve_network(config);
  expect_program(config, facts);
  resolve_transport(config, facts);
  config.servers = resolve_servers(config);
  config.workers = resolve_workers(config, facts);
  resolve_split(config);
  resolve_learning_rate(config, facts);
  resolve_scheme(config, facts);
  if (!config.global_batch) {
    config.batch_size = config.batch_size.value_or(BatchSizes(usual_batch));
  }
  config.warm_up = config.warm_up.value_or(0);
  if (config.run_dir.empty()) {
    config.run_dir = std::filesystem::path("runs") /
                     fmt::format("{}-{}-{}", facts.time, config.scheme, config.network->name);
  }
  config.cluster = anchored(config.cluster);
  config.data_dir = anchored(config.data_dir);
  if (is_data_folder(config.data)) {
    config.data = anchored(config.data).string();
  }
  check_whole_paths(config);
  check_config(config);
  return config;
}

}  // namespace syncopate
