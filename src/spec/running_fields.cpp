// The options that determine where a job runs, how its members exchange values, and when it ends.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/codec.hpp"
#include "spec/field_groups.hpp"

namespace syncopate {
namespace {

using Names = std::vector<std::string_view>;
using Config = TrainConfig;

Names device_names() {
  return {"auto", "cpu", "cuda"};
}

std::string_view help_of_compress() {
  static const std::string help =
      fmt::format("compression of gradients and deltas in messages, with error feedback; {}",
                  compression_help());
  return help;
}

/// In a configuration, 0 workers mean that the number was not given.
Field field_of_workers() {
  Field own = field(&Config::workers, {.name = "workers",
                                       .group = option_group::workers,
                                       .value = "N",
                                       .help = "number of worker processes, one device each",
                                       .limits = {.least = 1, .most = most_workers},
                                       .when_unset = "the cluster's devices, else 1"});
  own.initial = OptionValue();
  own.get = [](const Config& config) {
    return config.workers == 0 ? OptionValue() : OptionValue(std::int64_t{config.workers});
  };
  return own;
}

}  // namespace

std::vector<Field> workers_fields() {
  return {
      field_of_workers(),
      field(&Config::cluster, {.name = "cluster",
                               .group = option_group::workers,
                               .value = "FILE",
                               .help = "emulate the devices of a cluster file",
                               .when_unset = "real devices"}),
      field(&Config::time_scale, {.name = "time-scale",
                                  .group = option_group::workers,
                                  .value = "X",
                                  .help = "multiply the times of the cluster file by X",
                                  .limits = {.least = 1e-6, .most = 1e6}}),
      field(&Config::virtual_time, {.name = "virtual-time",
                                    .group = option_group::workers,
                                    .value = "",
                                    .help = "simulate the cluster: real gradients under a virtual "
                                            "clock, as fast as this machine computes"}),
      field(&Config::device, {.name = "device",
                              .group = option_group::workers,
                              .value = "cuda:N, a list by rank (cuda:0,cpu)",
                              .help = "the device of each worker; cuda: one CUDA device per worker",
                              .choices = device_names,
                              .also = is_device_list}),
      field(&Config::threads, {.name = "threads",
                               .group = option_group::workers,
                               .value = "N",
                               .help = "CPU threads per worker",
                               .limits = {.least = 1, .most = 1024}}),
      field(&Config::precision,
            {.name = "precision",
             .group = option_group::workers,
             .value = "NAME",
             .help = "number format of forward passes; bf16: bfloat16 where it is safe (autocast); "
                     "parameters and gradients stay float32"})};
}

std::vector<Field> synchronization_fields() {
  return {
      field(&Config::transport,
            {.name = "transport",
             .group = option_group::synchronization,
             .value = "NAME",
             .help =
                 "shm: shared memory on one host, sockets between hosts; tcp: sockets only; mpi: "
                 "shared memory on one host, MPI between hosts; auto: mpi under mpirun, else shm"}),
      field(&Config::compress, {.name = "compress",
                                .group = option_group::compression,
                                .value = parametrised_compressions(),
                                .help = help_of_compress(),
                                .choices = compression_names,
                                .also = is_parametrised_compression}),
      field(&Config::compress_remote,
            {.name = "compress-remote",
             .group = option_group::compression,
             .value = "",
             .help = "compress only between hosts; each host reduces its own values first"})};
}

std::vector<Field> server_fields() {
  return {field(&Config::servers, {.name = "servers",
                                   .group = option_group::server,
                                   .value = "N",
                                   .help = "number of parameter-server shards",
                                   .limits = {.most = most_workers},
                                   .when_unset = "1 if the scheme has a server"}),
          field(&Config::server_process,
                {.name = "server-process",
                 .group = option_group::server,
                 .value = "NAME",
                 .help = "process of the shards: one each, or the coordinator's"})};
}

std::vector<Field> stopping_fields() {
  return {
      field(&Config::epochs, {.name = "epochs",
                              .group = option_group::stopping,
                              .value = "X",
                              .help = "passes over the training set",
                              .limits = epochs_above_zero,
                              .resumable = true}),
      field(&Config::max_steps, {.name = "max-steps",
                                 .group = option_group::stopping,
                                 .value = "N",
                                 .help = "end the job after N steps of a worker, with the round",
                                 .limits = at_least_one,
                                 .when_unset = "no limit",
                                 .resumable = true}),
      field(&Config::max_time, {.name = "max-time",
                                .group = option_group::stopping,
                                .value = "SECONDS",
                                .help = "end the job after this training time",
                                .limits = seconds_above_zero,
                                .when_unset = "no limit",
                                .resumable = true}),
      field(&Config::target_accuracy,
            {.name = "target-accuracy",
             .group = option_group::stopping,
             .value = "X",
             .help = "end the job when two consecutive evaluations reach this accuracy, in (0, 1]",
             .limits = fraction,
             .when_unset = "none",
             .resumable = true})};
}

std::vector<Field> outputs_fields() {
  return {
      field(&Config::eval_every,
            {.name = "eval-every",
             .group = option_group::outputs,
             .value = "PERIOD",
             .help = "period of evaluations: 200steps, 0.5epochs, 10s or never",
             .resumable = true}),
      field(
          &Config::batch_norm,
          {.name = "batch-norm",
           .group = option_group::outputs,
           .value = "NAME",
           .help =
               "BatchNorm statistics in evaluations: running, or recomputed over training samples",
           .resumable = true}),
      field(&Config::checkpoint_every,
            {.name = "checkpoint-every",
             .group = option_group::outputs,
             .value = "PERIOD",
             .help = "period of checkpoints, from which --resume continues",
             .resumable = true}),
      field(&Config::trace, {.name = "trace",
                             .group = option_group::outputs,
                             .value = "NAME",
                             .help = "detail of trace.json.gz: off, the phases of rounds, or those "
                                     "of steps",
                             .resumable = true}),
      field(&Config::run_dir, {.name = "run-dir",
                               .group = option_group::outputs,
                               .value = "FOLDER",
                               .help = "new folder for all files of this run",
                               .when_unset = "runs/<time>-<scheme>-<network>"})};
}

std::vector<Field> failures_fields() {
  return {
      field(&Config::wait_limit, {.name = "wait-limit",
                                  .group = option_group::failures,
                                  .value = "SECONDS",
                                  .help = "minimum time limit of a wait for another node; a worker "
                                          "that computes also gets 20 times its longest step",
                                  .limits = seconds_above_zero,
                                  .resumable = true}),
      field(&Config::on_nan,
            {.name = "on-nan",
             .group = option_group::failures,
             .value = "NAME",
             .help = "reaction to a gradient that is not finite: end the job, or drop the batch",
             .resumable = true})};
}

}  // namespace syncopate
