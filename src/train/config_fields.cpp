#include "train/config_fields.hpp"

#include <algorithm>
#include <cctype>

#include "compression/compression.hpp"
#include "data/dataset.hpp"
#include "scheme/scheme_table.hpp"
#include "train/names.hpp"

namespace syncopate {
namespace {

using Names = std::vector<std::string_view>;
using Config = TrainConfig;

template <std::span<const std::string_view> (*names)()>
Names listed() {
  return {names().begin(), names().end()};
}

Names scheme_names() {
  Names names;
  for (const SchemeInfo& scheme : scheme_table()) {
    names.push_back(scheme.name);
  }
  return names;
}

Names data_names() {
  return {dataset_names().begin(), dataset_names().end()};
}

Names device_names() {
  return {"auto", "cpu", "cuda"};
}

bool is_numbered_cuda(std::string_view name) {
  if (!name.starts_with("cuda:") || name.size() == 5 || name.size() > 8) {
    return false;
  }
  return std::all_of(name.begin() + 5, name.end(),
                     [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

bool is_dirichlet(std::string_view name) {
  const auto split = Split::named(name);
  return split && split->kind == Split::Kind::dirichlet;
}

constexpr Limits at_least_one{.least = 1};
constexpr Limits positive{.above_least = true};
constexpr Limits fraction{.most = 1, .above_least = true};
/// A momentum of 1 would never forget a gradient.
constexpr Limits below_one{.most = 1, .below_most = true};

constexpr std::string_view what = "What is trained";
constexpr std::string_view who = "By whom";
constexpr std::string_view how = "How";
constexpr std::string_view meet = "How replicas meet";
constexpr std::string_view server = "What a parameter server does";
constexpr std::string_view until = "Until when";
constexpr std::string_view kept = "What is kept";

const Field fields[] = {
    {.name = "scheme",
     .group = what,
     .value = "NAME",
     .help = "how the replicas are kept together",
     .member = &Config::scheme,
     .choices = scheme_names},
    {.name = "network",
     .group = what,
     .value = "NAME",
     .help = "the model",
     .member = &Config::network,
     .choices = listed<known_networks>},
    {.name = "data",
     .group = what,
     .value = "NAME",
     .help = "the dataset",
     .member = &Config::data,
     .choices = data_names},
    {.name = "data-dir",
     .group = what,
     .value = "FOLDER",
     .help = "where its files are",
     .member = &Config::data_dir,
     .when_unset = "the place of Debian's package",
     .resumable = true},
    {.name = "split",
     .group = what,
     .value = "dirichlet:ALPHA",
     .help =
         "of the data over workers: iid: a shuffle each epoch; class: whole classes; dirichlet: "
         "each class in drawn proportions, the less alike the smaller ALPHA",
     .member = &Config::split,
     .choices = listed<known_splits>,
     .also = is_dirichlet},
    {.name = "split-by-class",
     .group = what,
     .value = "",
     .help = "another spelling of --split class",
     .member = &Config::split_by_class},
    {.name = "workers",
     .group = who,
     .value = "N",
     .help = "processes that train, one device each",
     .member = &Config::workers,
     .when_unset = "the cluster's devices, else 1"},
    {.name = "cluster",
     .group = who,
     .value = "FILE",
     .help = "emulate the devices of a cluster file",
     .member = &Config::cluster,
     .when_unset = "real devices"},
    {.name = "time-scale",
     .group = who,
     .value = "X",
     .help = "stretch the times of the cluster file by X",
     .member = &Config::time_scale,
     .limits = positive},
    {.name = "virtual-time",
     .group = who,
     .value = "",
     .help = "simulate the cluster: real gradients under a virtual clock, as fast as they compute",
     .member = &Config::virtual_time},
    {.name = "device",
     .group = who,
     .value = "cuda:N",
     .help = "what computes; cuda: each worker its own",
     .member = &Config::device,
     .choices = device_names,
     .also = is_numbered_cuda},
    {.name = "threads",
     .group = who,
     .value = "N",
     .help = "threads per worker",
     .member = &Config::threads,
     .limits = {.least = 1, .most = 1024}},
    {.name = "batch-size",
     .group = how,
     .value = "SAMPLES",
     .help = "mini-batch of one worker's step",
     .member = &Config::batch_size,
     .limits = at_least_one},
    {.name = "optimizer",
     .group = how,
     .value = "NAME",
     .help = "the rule of a step, on each worker or on the server",
     .member = &Config::optimizer,
     .choices = listed<known_optimizers>},
    {.name = "learning-rate",
     .group = how,
     .value = "X",
     .help = "before any schedule",
     .member = &Config::learning_rate,
     .limits = positive,
     .when_unset = "that of optimizer and scheme"},
    {.name = "momentum",
     .group = how,
     .value = "X",
     .help = "of the optimizers momentum and nesterov",
     .member = &Config::momentum,
     .limits = below_one},
    {.name = "weight-decay",
     .group = how,
     .value = "X",
     .help = "L2 penalty; decoupled with adamw",
     .member = &Config::weight_decay},
    {.name = "schedule",
     .group = how,
     .value = "NAME",
     .help = "how the learning rate moves",
     .member = &Config::schedule,
     .choices = listed<known_schedules>},
    {.name = "schedule-step",
     .group = how,
     .value = "EPOCHS",
     .help = "between two drops of schedule step",
     .member = &Config::schedule_step,
     .limits = positive},
    {.name = "schedule-factor",
     .group = how,
     .value = "X",
     .help = "of one drop of step; of the whole fall of cosine",
     .member = &Config::schedule_factor,
     .limits = {.most = 1}},
    {.name = "warm-up",
     .group = how,
     .value = "EPOCHS",
     .help = "raise the rate from nothing, before the schedule",
     .member = &Config::warm_up},
    {.name = "init",
     .group = how,
     .value = "NAME",
     .help = "first parameters: one draw for all, or the sum of all draws over the root of workers",
     .member = &Config::init,
     .choices = listed<known_inits>},
    {.name = "weights",
     .group = how,
     .value = "NAME",
     .help = "of workers in a mean: samples trained on, uniform, or share of the data; auto: data "
             "with a split other than iid, else samples",
     .member = &Config::weights,
     .choices = listed<known_weights>},
    {.name = "seed",
     .group = how,
     .value = "N",
     .help = "of every random choice",
     .member = &Config::seed},
    {.name = "aggregate",
     .group = meet,
     .value = "NAME",
     .help = "what adds up where all workers meet; auto: the cheapest allreduce",
     .member = &Config::aggregate,
     .choices = listed<known_aggregates>},
    {.name = "transport",
     .group = meet,
     .value = "NAME",
     .help = "shm: shared memory between nodes of one host, sockets to others; tcp: sockets alone; "
             "mpi: as shm, with MPI to others; auto: mpi under an MPI's mpirun, else shm",
     .member = &Config::transport,
     .choices = listed<known_transports>},
    {.name = "compress",
     .group = meet,
     .value = "topk:RATIO",
     .help = "what gradients and deltas become while they travel, with error feedback; topk: the "
             "greatest, RATIO of them in (0, 1]",
     .member = &Config::compress,
     .choices = listed<known_compressions>,
     .also = is_topk},
    {.name = "compress-remote",
     .group = meet,
     .value = "",
     .help = "compress only between hosts, each of which adds up by itself first",
     .member = &Config::compress_remote},
    {.name = "balance",
     .group = meet,
     .value = "",
     .help = "let the batch sizes of ssgd follow the speeds of the devices",
     .member = &Config::balance},
    {.name = "local-steps",
     .group = meet,
     .value = "N",
     .help = "between two meetings of local-sgd, diloco and easgd",
     .member = &Config::local_steps,
     .limits = at_least_one},
    {.name = "outer-optimizer",
     .group = meet,
     .value = "NAME",
     .help =
         "the rule of a round of local steps; auto: nesterov with diloco; of esync with a split "
         "other than iid, that of a local optimizer with momentum; else sgd",
     .member = &Config::outer_optimizer,
     .choices = listed<known_outer_optimizers>},
    {.name = "outer-momentum",
     .group = meet,
     .value = "X",
     .help = "of the outer optimizers momentum and nesterov",
     .member = &Config::outer_momentum,
     .limits = below_one},
    {.name = "drift-correction",
     .group = meet,
     .value = "NAME",
     .help = "of local steps on data that differ by worker; scaffold: control variates, for twice "
             "the traffic; auto: scaffold with a split other than iid, else none",
     .member = &Config::drift_correction,
     .choices = listed<known_drift_corrections>},
    {.name = "local-rate",
     .group = meet,
     .value = "NAME",
     .help =
         "of local steps: the learning rate each, or shared by the steps of a round; auto: round "
         "with a split other than iid, else step",
     .member = &Config::local_rate,
     .choices = listed<known_local_rates>},
    {.name = "global-lr",
     .group = meet,
     .value = "X",
     .help = "learning rate of the outer optimizer",
     .member = &Config::global_lr,
     .limits = positive,
     .when_unset = "1 with sgd, else 0.7"},
    {.name = "pacing",
     .group = meet,
     .value = "NAME",
     .help = "rounds of esync: as long as the sums want, or as the slowest takes for a mini-batch",
     .member = &Config::pacing,
     .choices = listed<known_pacings>},
    {.name = "round-time",
     .group = meet,
     .value = "SECONDS",
     .help = "of a round of esync with pacing timed",
     .member = &Config::round_time,
     .limits = positive,
     .when_unset = "auto: the shortest whose sums take 5 % of it"},
    {.name = "overlap",
     .group = meet,
     .value = "NAME",
     .help = "whether sums travel while workers compute: of ssgd the same step, of esync the next "
             "round",
     .member = &Config::overlap,
     .choices = listed<known_overlaps>},
    {.name = "mini-batches",
     .group = meet,
     .value = "N",
     .help = "into which nbssgd cuts a batch",
     .member = &Config::mini_batches,
     .limits = at_least_one},
    {.name = "signal",
     .group = meet,
     .value = "NAME",
     .help = "when a worker of nbssgd ends a round: its contribution amounts to a batch, or its "
             "batch ends",
     .member = &Config::signal,
     .choices = listed<known_signals>},
    {.name = "commit",
     .group = meet,
     .value = "NAME",
     .help = "of nbssgd: wait for the allreduce of a round, compute on, or update one model "
             "without rounds",
     .member = &Config::commit,
     .choices = listed<known_commits>},
    {.name = "through",
     .group = meet,
     .value = "NAME",
     .help = "what aggregates the rounds of nbssgd; with --commit racy, whether a server keeps the "
             "model instead of shared memory",
     .member = &Config::through,
     .choices = listed<known_throughs>},
    {.name = "servers",
     .group = server,
     .value = "N",
     .help = "shards of the parameter server",
     .member = &Config::servers,
     .when_unset = "1 where the scheme has a server"},
    {.name = "server-process",
     .group = server,
     .value = "NAME",
     .help = "where shards run: each in its own process, or in the coordinator's",
     .member = &Config::server_process,
     .choices = listed<known_server_processes>},
    {.name = "compensation",
     .group = server,
     .value = "NAME",
     .help = "how dc-asgd weighs a delay",
     .member = &Config::compensation,
     .choices = listed<known_compensations>},
    {.name = "lambda",
     .group = server,
     .value = "X",
     .help = "the weight of dc-asgd",
     .member = &Config::lambda,
     .when_unset = "2 adaptive, 0.04 constant"},
    {.name = "slack",
     .group = server,
     .value = "N",
     .help = "steps that ssp lets a worker be ahead of the slowest",
     .member = &Config::slack},
    {.name = "backup-workers",
     .group = server,
     .value = "N",
     .help = "gradients of a step that backup does not wait for",
     .member = &Config::backup_workers},
    {.name = "push-every",
     .group = server,
     .value = "STEPS",
     .help = "n_push of downpour",
     .member = &Config::push_every,
     .limits = at_least_one},
    {.name = "fetch-every",
     .group = server,
     .value = "STEPS",
     .help = "n_fetch of downpour",
     .member = &Config::fetch_every,
     .limits = at_least_one},
    {.name = "server-optimizer",
     .group = server,
     .value = "NAME",
     .help = "the rule of downpour's server; elsewhere it is --optimizer",
     .member = &Config::server_optimizer,
     .choices = listed<known_optimizers>},
    {.name = "server-learning-rate",
     .group = server,
     .value = "X",
     .help = "of downpour's server",
     .member = &Config::server_learning_rate,
     .limits = positive,
     .when_unset = "the rule's usual one"},
    {.name = "moving-rate",
     .group = server,
     .value = "X",
     .help = "alpha of easgd, in (0, 1]",
     .member = &Config::moving_rate,
     .limits = fraction,
     .when_unset = "0.9 over the workers"},
    {.name = "epochs",
     .group = until,
     .value = "X",
     .help = "passes over the training set",
     .member = &Config::epochs,
     .limits = positive,
     .resumable = true},
    {.name = "max-steps",
     .group = until,
     .value = "N",
     .help = "end after this many steps of a worker",
     .member = &Config::max_steps,
     .limits = at_least_one,
     .when_unset = "no limit",
     .resumable = true},
    {.name = "max-time",
     .group = until,
     .value = "SECONDS",
     .help = "end after this much training clock",
     .member = &Config::max_time,
     .limits = positive,
     .when_unset = "no limit",
     .resumable = true},
    {.name = "target-accuracy",
     .group = until,
     .value = "X",
     .help = "end when two evaluations in a row reach this, in (0, 1]",
     .member = &Config::target_accuracy,
     .limits = fraction,
     .when_unset = "none",
     .resumable = true},
    {.name = "eval-every",
     .group = kept,
     .value = "PERIOD",
     .help = "test the model: 200steps, 0.5epochs, 10s or never",
     .member = &Config::eval_every,
     .resumable = true},
    {.name = "checkpoint-every",
     .group = kept,
     .value = "PERIOD",
     .help = "keep the model, from which --resume goes on",
     .member = &Config::checkpoint_every,
     .resumable = true},
    {.name = "run-dir",
     .group = kept,
     .value = "FOLDER",
     .help = "a new folder for everything about this run",
     .member = &Config::run_dir,
     .when_unset = "runs/<time>-<scheme>-<network>"},
    {.name = "wait-limit",
     .group = "When to give up",
     .value = "SECONDS",
     .help =
         "the least that a wait for another node may take; a worker that computes gets 20 times "
         "the longest of its steps, too",
     .member = &Config::wait_limit,
     .limits = positive,
     .resumable = true},
    {.name = "on-nan",
     .group = "When to give up",
     .value = "NAME",
     .help = "where a gradient is not finite: end the job, or leave the batch out",
     .member = &Config::on_nan,
     .choices = listed<known_nan_policies>,
     .resumable = true},
};

}  // namespace

std::string Field::key() const {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::span<const Field> train_fields() {
  return fields;
}

const Field* find_field(std::string_view name) {
  const auto found = std::find_if(std::begin(fields), std::end(fields),
                                  [&](const Field& field) { return field.name == name; });
  return found == std::end(fields) ? nullptr : found;
}

}  // namespace syncopate
