#include "train/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "base/errors.hpp"
#include "scheme/scheme_table.hpp"
#include "train/names.hpp"
#include "train/split_defaults.hpp"
#include "train/worker_devices.hpp"

namespace syncopate {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  const auto last = text.find_last_not_of(' ');
  return first == std::string_view::npos ? "" : text.substr(first, last - first + 1);
}

std::optional<Every::Unit> unit_of(std::string_view name) {
  if (name == "step" || name == "steps") {
    return Every::Unit::steps;
  }
  if (name == "epoch" || name == "epochs") {
    return Every::Unit::epochs;
  }
  if (name == "s" || name == "second" || name == "seconds") {
    return Every::Unit::seconds;
  }
  return std::nullopt;
}

[[noreturn]] void refuse_period(std::string_view text) {
  throw ConfigError(
      fmt::format("expected a period such as 200steps, 0.5epochs, 10s or never; found '{}'", text));
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool meets_each_other(const TrainConfig& config) {
  return scheme_info(config.scheme).through == SchemeInfo::Through::each_other;
}

bool is_racy(const TrainConfig& config) {
  return config.scheme == "nbssgd" && config.commit == "racy";
}

bool is_nbssgd(const TrainConfig& config) {
  return config.scheme == "nbssgd";
}

/// A racy contribution goes to a server, or else to shared memory, and is in no allreduce.
bool chooses_through(const TrainConfig& config) {
  return is_nbssgd(config) && (!is_racy(config) || config.through == "server");
}

/// Of nbssgd `through` decides between an allreduce and a server.
bool may_add_by_server(const TrainConfig& config) {
  return meets_each_other(config) && config.scheme != "nbssgd";
}

bool chooses_aggregate(const TrainConfig& config) {
  return may_add_by_server(config) ||
         (is_nbssgd(config) && !is_racy(config) && config.through == "allreduce");
}

bool may_choose_outer(const TrainConfig& config) {
  return is_one_of(config.scheme, {"diloco", "esync"});
}

bool has_outer_momentum(const TrainConfig& config) {
  return may_choose_outer(config) && config.outer_optimizer != "sgd";
}

/// Where a server adds, it takes the gradient of ssgd whole.
bool overlaps(const TrainConfig& config) {
  return is_paced(config) || (config.scheme == "ssgd" && config.aggregate != "server");
}

/// A server draws replicas of easgd to its own by the moving rate; local has one worker.
bool weighs_workers(const TrainConfig& config) {
  return !is_one_of(config.scheme, {"local", "easgd"});
}

bool counts_local_steps(const TrainConfig& config) {
  return is_one_of(config.scheme, {"local-sgd", "diloco", "easgd"});
}

/// Whether one of the rules of a job reads an option: of each worker, or of a server; downpour has both.
bool some_optimizer(const TrainConfig& config, bool (*uses)(std::string_view)) {
  return uses(config.optimizer) || (config.scheme == "downpour" && uses(config.server_optimizer));
}

bool evaluates_batch_norm(const TrainConfig& config) {
  return has_batch_norm(config.network) && config.eval_every.unit != Every::Unit::never;
}

constexpr std::string_view compressible =
    "ssgd, local-sgd, diloco, esync or nbssgd by an allreduce, asgd, dc-asgd, ssp, backup or "
    "downpour";

/// Options that only some values of another option give a meaning to.
struct Dependence {
  std::string_view option;
  bool (*has_meaning)(const TrainConfig&);
  std::string_view needs;
};

constexpr Dependence dependences[] = {
    {"momentum", [](const TrainConfig& config) { return some_optimizer(config, uses_momentum); },
     "--optimizer momentum or nesterov"},
    {"beta1", [](const TrainConfig& config) { return some_optimizer(config, uses_betas); },
     "--optimizer adam or adamw"},
    {"beta2", [](const TrainConfig& config) { return some_optimizer(config, uses_betas); },
     "--optimizer adam or adamw"},
    {"alpha", [](const TrainConfig& config) { return some_optimizer(config, uses_alpha); },
     "--optimizer rmsprop"},
    {"epsilon", [](const TrainConfig& config) { return some_optimizer(config, uses_epsilon); },
     "--optimizer rmsprop, adam, adamw or adagrad"},
    {"batch-norm", evaluates_batch_norm,
     "a network with BatchNorm (resnet18-v1), and evaluations of it"},
    {"schedule-step", [](const TrainConfig& config) { return config.schedule == "step"; },
     "--schedule step"},
    {"schedule-factor", [](const TrainConfig& config) { return config.schedule != "constant"; },
     "--schedule step or cosine"},
    {"time-scale", [](const TrainConfig& config) { return !config.cluster.empty(); }, "--cluster"},
    {"server-process", [](const TrainConfig& config) { return has_server(config); },
     "a scheme that has a server"},
    {"aggregate", chooses_aggregate,
     "a scheme in which all workers meet; with nbssgd, --through allreduce"},
    {"mini-batches", is_nbssgd, "--scheme nbssgd"},
    {"signal", is_nbssgd, "--scheme nbssgd"},
    {"commit", is_nbssgd, "--scheme nbssgd"},
    {"through", chooses_through, "--scheme nbssgd; --commit racy takes --through server alone"},
    {"outer-optimizer", [](const TrainConfig& config) { return may_choose_outer(config); },
     "--scheme diloco or esync"},
    {"outer-momentum", [](const TrainConfig& config) { return has_outer_momentum(config); },
     "--scheme diloco or esync, and an outer optimizer other than sgd"},
    {"local-rate", has_local_rounds, "--scheme local-sgd, diloco or esync"},
    {"drift-correction", has_local_rounds, "--scheme local-sgd, diloco or esync"},
    {"weights", weighs_workers, "a scheme that weighs workers, which local and easgd do not"},
    {"global-lr", has_local_rounds, "--scheme local-sgd, diloco or esync"},
    {"compress", may_compress, compressible},
    {"compress-remote", [](const TrainConfig& config) { return config.compress != "none"; },
     "--compress"},
    {"balance", [](const TrainConfig& config) { return config.scheme == "ssgd"; }, "--scheme ssgd"},
    {"pacing", is_paced, "--scheme esync"},
    {"round-time",
     [](const TrainConfig& config) { return is_paced(config) && config.pacing == "timed"; },
     "--scheme esync and --pacing timed"},
    {"pacing-margin",
     [](const TrainConfig& config) { return is_paced(config) && config.pacing == "paper"; },
     "--scheme esync and --pacing paper"},
    {"overlap", overlaps, "--scheme ssgd without --aggregate server, or esync"},
    {"compensation", [](const TrainConfig& config) { return config.scheme == "dc-asgd"; },
     "--scheme dc-asgd"},
    {"lambda", [](const TrainConfig& config) { return config.scheme == "dc-asgd"; },
     "--scheme dc-asgd"},
    {"slack", [](const TrainConfig& config) { return config.scheme == "ssp"; }, "--scheme ssp"},
    {"backup-workers", [](const TrainConfig& config) { return config.scheme == "backup"; },
     "--scheme backup"},
    {"push-every", [](const TrainConfig& config) { return config.scheme == "downpour"; },
     "--scheme downpour"},
    {"fetch-every", [](const TrainConfig& config) { return config.scheme == "downpour"; },
     "--scheme downpour"},
    {"server-optimizer", [](const TrainConfig& config) { return config.scheme == "downpour"; },
     "--scheme downpour"},
    {"server-learning-rate", [](const TrainConfig& config) { return config.scheme == "downpour"; },
     "--scheme downpour"},
    {"local-steps", [](const TrainConfig& config) { return counts_local_steps(config); },
     "--scheme local-sgd, diloco or easgd"},
    {"moving-rate", [](const TrainConfig& config) { return config.scheme == "easgd"; },
     "--scheme easgd"},
    {"data-dir", [](const TrainConfig& config) { return config.data != "synthetic"; },
     "--data fashion-mnist or mnist"},
};

/// Errors: ConfigError, where nothing travels that could be compressed, or not in the way that is told.
void check_compression(const TrainConfig& config) {
  if (config.compress == "none") {
    return;
  }
  if (!may_compress(config)) {
    throw ConfigError(
        fmt::format("compress {} needs a scheme whose workers send gradients or deltas: {}; found "
                    "scheme {}; leave out compress",
                    config.compress, compressible, config.scheme));
  }
  if (chooses_aggregate(config) && config.aggregate != "auto") {
    throw ConfigError(fmt::format(
        "compress {} adds up in a way of its own, found aggregate {}; leave one of them out",
        config.compress, config.aggregate));
  }
}

/// How many updates of the model an update shares its place with: where each gradient is an update of
/// its own, the P − 1 of others that came while it was computed, and the P − 1 that will not have
/// seen it; with overlap of nbssgd the one round that may end while a mini-batch is computed.
std::uint32_t updates_at_once(const TrainConfig& config) {
  const bool one_by_one =
      is_racy(config) || is_one_of(config.scheme, {"asgd", "dc-asgd", "ssp", "hogwild"});
  const bool delayed = is_nbssgd(config) && config.commit == "overlap" && config.workers > 1;
  return one_by_one ? 2 * config.workers - 1 : delayed ? 2 : 1;
}

std::string_view advice_on_servers(const TrainConfig& config) {
  if (is_nbssgd(config)) {
    return ", or say --through server";
  }
  return may_add_by_server(config) ? ", or say --aggregate server" : "";
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

/// The outer optimizer of a scheme, and its usual rate: with plain SGD at 1 the model becomes the mean of
/// the replicas; with momentum, that of DiLoCo, whose workers use AdamW. Where theirs has a momentum, too,
/// LeNet-5 does not reach 0.85 in five epochs at 0.7 (0.80 and 0.82 in two seeds), and does in two at 0.3.
void resolve_outer(TrainConfig& config) {
  if (config.outer_optimizer == "auto") {
    config.outer_optimizer = config.scheme == "diloco" ? "nesterov" : "sgd";
  }
  if (!config.global_lr) {
    const double with_momentum = uses_momentum(config.optimizer) ? 0.3 : 0.7;
    config.global_lr = config.outer_optimizer == "sgd" ? 1 : with_momentum;
  }
}

void resolve_learning_rate(TrainConfig& config, const ConfigFacts& facts) {
  if (facts.usual_learning_rate && !config.learning_rate) {
    const double usual = facts.usual_learning_rate(config.optimizer);
    config.learning_rate = usual / updates_at_once(config);
  }
}

/// Fills what follows from the scheme, the optimizer and the number of workers.
void resolve_rates(TrainConfig& config, const ConfigFacts& facts) {
  if (!config.lambda) {
    config.lambda = config.compensation == "adaptive" ? 2 : 0.04;
  }
  if (!config.moving_rate) {
    config.moving_rate = 0.9 / config.workers;
  }
  if (facts.usual_learning_rate && !config.server_learning_rate) {
    config.server_learning_rate = facts.usual_learning_rate(config.server_optimizer);
  }
}

/// "5 ranks, 1 of them a server"
std::string told(std::uint32_t ranks, std::uint32_t servers) {
  return servers == 0 ? fmt::format("{} ranks", ranks)
                      : fmt::format("{} ranks, {} of them {}", ranks, servers,
                                    servers == 1 ? "a server" : "servers");
}

/// How many workers there can be, which others than the user have settled: the cluster file, or who has
/// started this process. Empty where nobody has.
std::optional<std::uint32_t> settled_workers(const TrainConfig& config, const ConfigFacts& facts) {
  if (!facts.ranks) {
    return facts.devices;
  }
  if (*facts.ranks <= config.servers) {
    throw ConfigError(fmt::format("{} were started, which leaves none for a worker; start more",
                                  told(*facts.ranks, config.servers)));
  }
  const std::uint32_t workers = *facts.ranks - config.servers;
  if (facts.devices && *facts.devices != workers) {
    throw ConfigError(fmt::format("{} were started, but {} has {} devices; start {}",
                                  told(*facts.ranks, config.servers), config.cluster.string(),
                                  *facts.devices, *facts.devices + config.servers));
  }
  return workers;
}

/// Servers are settled already.
std::uint32_t resolve_workers(const TrainConfig& config, const ConfigFacts& facts) {
  const auto settled = settled_workers(config, facts);
  if (!settled) {
    return config.workers == 0 ? 1 : config.workers;
  }
  if (config.workers != 0 && config.workers != *settled) {
    throw ConfigError(
        facts.ranks
            ? fmt::format("{} workers do not fit {}; leave out workers", config.workers,
                          told(*facts.ranks, config.servers))
            : fmt::format("{} workers do not fit {}, which has {} devices; leave out workers",
                          config.workers, config.cluster.string(), *facts.devices));
  }
  return *settled;
}

/// Errors: ConfigError, where those who add up cannot do so as told.
void check_aggregate(const TrainConfig& config) {
  if (!chooses_aggregate(config)) {
    return;
  }
  if (config.aggregate == "butterfly" && !std::has_single_bit(config.workers)) {
    throw ConfigError(
        fmt::format("aggregate butterfly needs a power of two of workers, found {}; choose "
                    "binary-blocks, which takes any number, or auto",
                    config.workers));
  }
  if (config.aggregate == "shm" && config.transport == "tcp") {
    throw ConfigError(
        "aggregate shm needs shared memory, which transport tcp does without; leave out transport");
  }
  if (config.aggregate == "mpi" && config.transport != "mpi") {
    throw ConfigError("aggregate mpi needs transport mpi, found " + config.transport);
  }
  if (config.aggregate == "server" && !may_add_by_server(config)) {
    throw ConfigError(
        "with scheme nbssgd a server adds up by --through server; leave out aggregate");
  }
}

/// Errors: ConfigError, for MPI where nobody has started ranks that would come together.
void resolve_transport(TrainConfig& config, const ConfigFacts& facts) {
  if (config.transport == "auto") {
    config.transport = facts.mpi ? "mpi" : "shm";
  }
  if (config.transport == "mpi" && !facts.mpi) {
    throw ConfigError(
        "transport mpi needs an MPI's launcher: start the job by mpirun, or by srun with "
        "--mpi=pmix "
        "or --mpi=pmi2");
  }
}

std::filesystem::path anchored(const std::filesystem::path& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal();
}

}  // namespace

Every Every::parse(std::string_view text) {
  const std::string_view period = trimmed(text);
  if (period == "never") {
    return {};
  }
  Every every;
  const auto [end, error] =
      std::from_chars(period.data(), period.data() + period.size(), every.amount);
  const std::string_view rest(end, static_cast<std::size_t>(period.data() + period.size() - end));
  const auto unit = unit_of(trimmed(rest));
  if (error != std::errc() || !unit || !std::isfinite(every.amount) || every.amount <= 0) {
    refuse_period(text);
  }
  every.unit = *unit;
  if (every.unit == Unit::steps && every.amount != std::floor(every.amount)) {
    throw ConfigError(fmt::format("expected a whole number of steps, found '{}'", text));
  }
  return every;
}

std::string Every::to_string() const {
  switch (unit) {
    case Unit::never: return "never";
    case Unit::steps: return fmt::format("{} step{}", amount, amount == 1 ? "" : "s");
    case Unit::epochs: return fmt::format("{} epoch{}", amount, amount == 1 ? "" : "s");
    case Unit::seconds: return fmt::format("{} s", amount);
  }
  return "never";
}

Split split_of(const TrainConfig& config) {
  return config.split_by_class ? Split{.kind = Split::Kind::by_class}
                               : Split::named(config.split).value_or(Split{});
}

bool averages_workers(const TrainConfig& config) {
  return meets_each_other(config) && !is_racy(config);
}

bool has_local_rounds(const TrainConfig& config) {
  return is_one_of(config.scheme, {"local-sgd", "diloco", "esync"});
}

bool is_paced(const TrainConfig& config) {
  return config.scheme == "esync";
}

bool has_server(const TrainConfig& config) {
  return scheme_info(config.scheme).through == SchemeInfo::Through::server ||
         (may_add_by_server(config) && config.aggregate == "server") ||
         (is_nbssgd(config) && config.through == "server");
}

bool server_keeps_model(const TrainConfig& config) {
  return scheme_info(config.scheme).through == SchemeInfo::Through::server ||
         (is_racy(config) && config.through == "server");
}

bool may_compress(const TrainConfig& config) {
  if (server_keeps_model(config)) {
    return config.scheme != "easgd";  // whose workers send their parameters
  }
  return meets_each_other(config) && !is_racy(config) && !has_server(config);
}

bool meets_in_shared_memory(const TrainConfig& config) {
  return scheme_info(config.scheme).through == SchemeInfo::Through::shared_memory ||
         (is_racy(config) && config.through != "server");
}

void check_config(const TrainConfig& config) {
  if (config.scheme == "local" && config.workers > 1) {
    throw ConfigError(fmt::format(
        "scheme local trains on one device, found {} workers; did you mean ssgd?", config.workers));
  }
  if (config.virtual_time && config.cluster.empty()) {
    throw ConfigError(
        "virtual time needs a cluster file, whose devices say how long a step takes; name one by "
        "--cluster");
  }
  check_devices(config);
  check_split(config);
  check_aggregate(config);
  check_compression(config);
  if (config.scheme == "backup" && config.backup_workers >= config.workers) {
    throw ConfigError(fmt::format("{} backup workers of {} leave none to wait for; use fewer",
                                  config.backup_workers, config.workers));
  }
  if (config.target_accuracy && config.eval_every.unit == Every::Unit::never) {
    throw ConfigError("a target accuracy needs evaluations, but eval-every is never");
  }
  if (config.outer_optimizer == "nesterov" && config.outer_momentum == 0) {
    throw ConfigError("outer optimizer nesterov needs a momentum above 0; without one it is sgd");
  }
  if (config.optimizer == "nesterov" && config.momentum == 0) {
    throw ConfigError("optimizer nesterov needs a momentum above 0; without one it is sgd");
  }
  if (config.warm_up > config.epochs) {
    throw ConfigError(fmt::format("a warm-up of {} epochs does not fit into {} epochs of training",
                                  config.warm_up, config.epochs));
  }
}

void check_given(const TrainConfig& config, const std::set<std::string_view>& given) {
  for (const Dependence& dependence : dependences) {
    if (given.contains(dependence.option) && !dependence.has_meaning(config)) {
      throw ConfigError(
          fmt::format("--{} has no effect without {}", dependence.option, dependence.needs));
    }
  }
}

TrainConfig resolve_config(TrainConfig config, const ConfigFacts& facts) {
  check_split(config);
  resolve_transport(config, facts);
  config.servers = resolve_servers(config);
  config.workers = resolve_workers(config, facts);
  resolve_split(config);
  resolve_learning_rate(config, facts);
  move_momentum_outside(config);
  resolve_outer(config);
  resolve_rates(config, facts);
  if (config.run_dir.empty()) {
    config.run_dir = std::filesystem::path("runs") /
                     fmt::format("{}-{}-{}", facts.time, config.scheme, config.network);
  }
  config.cluster = anchored(config.cluster);
  config.data_dir = anchored(config.data_dir);
  check_config(config);
  return config;
}

}  // namespace syncopate
