// Length: one table, with an entry for each option of `train`.
#include "job/spec/config_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "codec/codec.hpp"
#include "config/option.hpp"
#include "data/dataset.hpp"
#include "job/spec/config.hpp"
#include "job/spec/network_file.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {

/// As `Compression::parse` reads it.
template <>
struct OptionTraits<Compression> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const Compression& value) { return to_string(value); }
  static Compression read(const OptionValue& value) {
    return Compression::parse(std::get<std::string>(value));
  }
};

/// As `Split::parse` reads it.
template <>
struct OptionTraits<Split> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const Split& value) { return to_string(value); }
  static Split read(const OptionValue& value) { return Split::parse(std::get<std::string>(value)); }
};

/// As `parse_shares` reads them. No shares are none that are set.
template <>
struct OptionTraits<std::vector<double>> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const std::vector<double>& value) {
    return value.empty() ? OptionValue() : OptionValue(shares_text(value));
  }
  static std::vector<double> read(const OptionValue& value) {
    return parse_shares(std::get<std::string>(value));
  }
};

/// As `Every::parse` reads it.
template <>
struct OptionTraits<Every> {
  static constexpr OptionType type = OptionType::period;
  static constexpr bool may_be_open = false;
  static OptionValue written(const Every& value) { return value.to_string(); }
  static Every read(const OptionValue& value) { return Every::parse(to_text(value)); }
};

namespace {

using Names = std::vector<std::string_view>;
using Config = TrainConfig;

Names scheme_names() {
  Names names;
  for (const SchemeSpec* const scheme : all_schemes()) {
    names.push_back(scheme->name);
  }
  return names;
}

Names data_names() {
  return {dataset_names().begin(), dataset_names().end()};
}

Names device_names() {
  return {"auto", "cpu", "cuda"};
}

template <class T>
Field field(T Config::*member, OptionSpec spec) {
  if constexpr (requires { OptionTraits<T>::choices; }) {
    spec.choices = &OptionTraits<T>::choices;
  }
  spec.type = OptionTraits<T>::type;
  spec.may_be_open = OptionTraits<T>::may_be_open;
  spec.initial = OptionTraits<T>::written(Config{}.*member);
  return {std::move(spec),
          [member](const Config& config) { return OptionTraits<T>::written(config.*member); },
          [member](Config& config, const OptionValue& value) {
            config.*member = OptionTraits<T>::read(value);
          },
          /*of_scheme=*/false};
}

std::vector<Field> model_and_data_fields() {
  return {field(&Config::scheme, {.name = "scheme",
                                  .group = option_group::model_and_data,
                                  .value = "NAME",
                                  .help = "the distributed training scheme",
                                  .choices = scheme_names}),
          field(&Config::network, {.name = "network",
                                   .group = option_group::model_and_data,
                                   .value = "a TorchScript file (model.pt)",
                                   .help = "the model",
                                   .also = is_network_file}),
          field(&Config::data, {.name = "data",
                                .group = option_group::model_and_data,
                                .value = "DIR/",
                                .help = "the dataset, or the path of a folder of your own images "
                                        "or arrays",
                                .choices = data_names,
                                .also = is_data_folder}),
          field(&Config::data_dir, {.name = "data-dir",
                                    .group = option_group::model_and_data,
                                    .value = "FOLDER",
                                    .help = "the folder of the dataset's files",
                                    .when_unset = "the folder of Debian's package",
                                    .resumable = true}),
          field(&Config::split, {.name = "split",
                                 .group = option_group::model_and_data,
                                 .value = "dirichlet:ALPHA",
                                 .help = "how workers divide the data; iid: shuffled each epoch; "
                                         "class: whole classes per worker; dirichlet: each class "
                                         "in random proportions, more uneven with a smaller ALPHA",
                                 .choices = split_names,
                                 .also = is_dirichlet}),
          field(&Config::split_by_class, {.name = "split-by-class",
                                          .group = option_group::model_and_data,
                                          .value = "",
                                          .help = "the same as --split class"}),
          field(&Config::shares, {.name = "shares",
                                  .group = option_group::model_and_data,
                                  .value = "X,Y,...",
                                  .help = "the shares of the workers in the data, by rank: 2,1,1",
                                  .when_unset = "by batch size or speed"}),
          field(&Config::image_size, {.name = "image-size",
                                      .group = option_group::model_and_data,
                                      .value = "N",
                                      .help = "scale the images of a folder to N x N pixels",
                                      .limits = {.least = 1, .most = 4096},
                                      .when_unset = "the size of the first image"}),
          field(&Config::resize, {.name = "resize",
                                  .group = option_group::model_and_data,
                                  .value = "N",
                                  .help = "scale images to NxN before the network, on the device",
                                  .limits = image_sides,
                                  .when_unset = "images as they are"}),
          field(&Config::augment,
                {.name = "augment",
                 .group = option_group::model_and_data,
                 .value = "NAME",
                 .help = "random changes of training images; crop: a part of the image with a "
                         "border of 4 pixels; flip: left to right"})};
}

std::vector<Field> workers_fields() {
  return {
      field(&Config::workers, {.name = "workers",
                               .group = option_group::workers,
                               .value = "N",
                               .help = "number of worker processes, one device each",
                               .limits = {.most = most_workers},
                               .when_unset = "the cluster's devices, else 1"}),
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

std::vector<Field> optimizer_fields() {
  return {
      field(&Config::batch_size, {.name = "batch-size",
                                  .group = option_group::optimization,
                                  .value = "SAMPLES",
                                  .help = "samples per worker and step",
                                  .limits = batch_sizes}),
      field(&Config::optimizer, {.name = "optimizer",
                                 .group = option_group::optimization,
                                 .value = "NAME",
                                 .help = "the optimizer of the workers, or of the parameter server "
                                         "where it holds the model"}),
      field(&Config::learning_rate, {.name = "learning-rate",
                                     .group = option_group::optimization,
                                     .value = "X",
                                     .help = "learning rate, which the schedule scales",
                                     .limits = rates,
                                     .when_unset = "by optimizer and scheme"}),
      field(&Config::momentum,
            {.name = "momentum",
             .group = option_group::optimization,
             .value = "X",
             .help = "momentum coefficient of the optimizers momentum and nesterov",
             .limits = below_one}),
      field(&Config::beta1, {.name = "beta1",
                             .group = option_group::optimization,
                             .value = "X",
                             .help = "decay of the mean gradient in the optimizers adam and adamw",
                             .limits = below_one}),
      field(&Config::beta2,
            {.name = "beta2",
             .group = option_group::optimization,
             .value = "X",
             .help = "decay of the mean squared gradient in the optimizers adam and adamw",
             .limits = below_one}),
      field(&Config::alpha, {.name = "alpha",
                             .group = option_group::optimization,
                             .value = "X",
                             .help = "decay of the mean squared gradient in the optimizer rmsprop",
                             .limits = below_one}),
      field(&Config::epsilon, {.name = "epsilon",
                               .group = option_group::optimization,
                               .value = "X",
                               .help = "constant added to the denominator in the optimizers "
                                       "rmsprop, adam, adamw and adagrad",
                               .limits = {.most = 1000, .above_least = true},
                               .when_unset = "1e-8; 1e-10 with adagrad"}),
      field(&Config::weight_decay, {.name = "weight-decay",
                                    .group = option_group::optimization,
                                    .value = "X",
                                    .help = "L2 penalty; adamw decays the weights directly",
                                    .limits = {.most = 1000}})};
}

std::vector<Field> schedule_and_start_fields() {
  return {
      field(&Config::schedule, {.name = "schedule",
                                .group = option_group::optimization,
                                .value = "NAME",
                                .help = "learning-rate schedule"}),
      field(&Config::schedule_step, {.name = "schedule-step",
                                     .group = option_group::optimization,
                                     .value = "EPOCHS",
                                     .help = "epochs between two drops of --schedule step",
                                     .limits = epochs_above_zero}),
      field(
          &Config::schedule_factor,
          {.name = "schedule-factor",
           .group = option_group::optimization,
           .value = "X",
           .help = "factor of each drop with --schedule step; final factor with --schedule cosine",
           .limits = {.most = 1}}),
      field(&Config::warm_up, {.name = "warm-up",
                               .group = option_group::optimization,
                               .value = "EPOCHS",
                               .help = "epochs of linear warm-up from 0, before the schedule",
                               .limits = epochs_from_zero}),
      field(&Config::init,
            {.name = "init",
             .group = option_group::optimization,
             .value = "NAME",
             .help = "initial parameters: broadcast those of worker 0, or sum independent draws "
                     "over the square root of the number of workers"}),
      field(&Config::weight_init,
            {.name = "weight-init",
             .group = option_group::optimization,
             .value = "NAME",
             .help = "distribution of the first weights of convolutions and linear layers; xavier "
                     "and he set biases to 0"}),
      field(&Config::weights,
            {.name = "weights",
             .group = option_group::optimization,
             .value = "NAME",
             .help = "weight of a worker in a mean: samples trained on, uniform, or share of the "
                     "data; auto: data with a split other than iid, else samples",
             .when_unset = "auto"}),
      field(&Config::seed, {.name = "seed",
                            .group = option_group::optimization,
                            .value = "N",
                            .help = "seed of all random choices",
                            .limits = seeds})};
}

std::string_view help_of_compress() {
  static const std::string help =
      fmt::format("compression of gradients and deltas in messages, with error feedback; {}",
                  compression_help());
  return help;
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
                                   .when_unset = "1 where the scheme has a server"}),
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
                                 .help = "end the job after N steps of a worker",
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

/// In the order of help texts.
std::vector<Field> fields_of_every_job() {
  std::vector<Field> all;
  for (const auto fields :
       {model_and_data_fields, workers_fields, optimizer_fields, schedule_and_start_fields,
        synchronization_fields, server_fields, stopping_fields, outputs_fields, failures_fields}) {
    std::ranges::move(fields(), std::back_inserter(all));
  }
  return all;
}

Field field_of_scheme(const OptionSpec& option) {
  return {option, [option](const Config& config) { return config.scheme_options.get(option); },
          [option](Config& config, const OptionValue& value) {
            config.scheme_options.set(option, value);
          },
          /*of_scheme=*/true};
}

/// The options of schemes come after those of every job in their group.
std::vector<Field> all_fields() {
  std::vector<Field> fields = fields_of_every_job();
  for (const OptionSpec& option : scheme_options()) {
    const auto after = std::find_if(fields.rbegin(), fields.rend(), [&](const Field& field) {
      return field.group == option.group;
    });
    fields.insert(after.base(), field_of_scheme(option));
  }
  return fields;
}

/// A value of an option under its earlier name, and the option and value that replace it.
struct OldValue {
  std::string_view name;
  std::string_view value;
  std::string_view new_name;
  std::string_view new_value;
};

constexpr std::array old_values{OldValue{"through", "allreduce", "aggregate", "auto"},
                                OldValue{"through", "server", "aggregate", "server"}};

constexpr std::array<std::string_view, 1> old_names{"through"};

}  // namespace

std::span<const Field> train_fields() {
  static const std::vector<Field> fields = all_fields();
  return fields;
}

const Field* find_field(std::string_view name) {
  const auto fields = train_fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

OptionValue get_field(const Field& field, const TrainConfig& config) {
  return field.get(config);
}

void set_field(const Field& field, TrainConfig& config, const OptionValue& value) {
  field.set(config, checked(field, value));
}

void set_field_from_text(const Field& field, TrainConfig& config, std::string_view text) {
  field.set(config, value_in(field, text));
}

std::span<const std::string_view> old_option_names() {
  return old_names;
}

std::optional<std::string_view> set_old_option(TrainConfig& config, std::string_view name,
                                               std::string_view text) {
  if (std::ranges::find(old_names, name) == old_names.end()) {
    return std::nullopt;
  }
  for (const OldValue& old : old_values) {
    if (old.name == name && old.value == text) {
      log::warn("{} {} is now {} {}", name, text, old.new_name, old.new_value);
      set_field_from_text(*find_field(old.new_name), config, old.new_value);
      return old.new_name;
    }
  }
  throw ConfigError(fmt::format("expected one of allreduce, server, found '{}'", text));
}

}  // namespace syncopate
