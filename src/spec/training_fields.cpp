// The options that determine what is trained, and how.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/text.hpp"
#include "data/dataset.hpp"
#include "scheme/scheme_spec.hpp"
#include "spec/field_groups.hpp"
#include "spec/network_file.hpp"

namespace syncopate {
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

}  // namespace

OptionValue OptionTraits<BatchSizes>::written(const BatchSizes& value) {
  return value.listed() > 0 ? OptionValue(fmt::format("{}", fmt::join(value.sizes(), ",")))
                            : OptionValue(std::int64_t{value.of(0)});
}

BatchSizes OptionTraits<BatchSizes>::read(const OptionValue& value) {
  const auto* const list = std::get_if<std::string>(&value);
  if (list == nullptr) {
    return OptionTraits<std::uint32_t>::read(value);
  }
  std::vector<std::uint32_t> sizes;
  for (const std::string_view entry : entries_of(*list)) {
    sizes.push_back(number_in<std::uint32_t>(entry).value());
  }
  return BatchSizes(std::move(sizes));
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
                                   .also = is_network_file,
                                   .also_paths = true}),
          field(&Config::data, {.name = "data",
                                .group = option_group::model_and_data,
                                .value = "DIR/",
                                .help = "the dataset, or the path of a folder of your own images "
                                        "or arrays",
                                .choices = data_names,
                                .also = is_data_folder,
                                .also_paths = true}),
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

std::vector<Field> batch_fields() {
  return {
      field(&Config::batch_size, {.name = "batch-size",
                                  .group = option_group::optimization,
                                  .value = "SAMPLES",
                                  .help = "samples per worker and step; a list gives those of each "
                                          "worker, by rank: 24,12,6",
                                  .limits = batch_sizes,
                                  .when_unset = "64; the part of a global batch with esync"}),
      field(&Config::global_batch,
            {.name = "global-batch",
             .group = option_group::optimization,
             .value = "SAMPLES",
             .help = "samples of all workers together and a step, in place of --batch-size: parts "
                     "by the speeds of a cluster file, else equal",
             .limits = batch_sizes,
             .when_unset = "with esync and a split iid 64, or 8 for each worker if that is "
                           "more; 16 with BatchNorm"}),
      field(&Config::max_batch_size,
            {.name = "max-batch-size",
             .group = option_group::optimization,
             .value = "SAMPLES",
             .help = "most samples of a worker's step, for its memory; a list gives those of each "
                     "worker, by rank",
             .limits = batch_sizes,
             .when_unset = "any"})};
}

std::vector<Field> optimizer_fields() {
  return {
      field(&Config::optimizer, {.name = "optimizer",
                                 .group = option_group::optimization,
                                 .value = "NAME",
                                 .help = "the optimizer of the workers, or of the parameter server "
                                         "if it holds the model"}),
      field(&Config::learning_rate, {.name = "learning-rate",
                                     .group = option_group::optimization,
                                     .value = "X",
                                     .help = "learning rate, which the schedule scales",
                                     .limits = rates,
                                     .when_unset = "by optimizer and scheme",
                                     .resumable = true}),
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
                                    .limits = {.most = 1000}}),
      field(
          &Config::clip_norm,
          {.name = "clip-norm",
           .group = option_group::optimization,
           .value = "X",
           .help = "greatest norm of a gradient; a longer one is scaled: with ssgd and nbssgd the "
                   "mean of all workers, else each worker's own",
           .limits = positive,
           .when_unset = "any"})};
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
                               .limits = epochs_from_zero,
                               .when_unset = "0; 0.125, or an eighth of fewer epochs than one, "
                                             "with esync and a split other than iid"}),
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

}  // namespace syncopate
