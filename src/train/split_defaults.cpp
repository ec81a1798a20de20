#include "train/split_defaults.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "train/names.hpp"

namespace syncopate {
namespace {

bool parts_differ(const TrainConfig& config) {
  return split_of(config).is_skewed() && config.workers > 1;
}

}  // namespace

void resolve_split(TrainConfig& config) {
  config.split = split_of(config).to_string();
  config.split_by_class = false;
  const bool skewed = parts_differ(config);
  if (config.weights == "auto") {
    config.weights = skewed && averages_workers(config) ? "data" : "samples";
  }
  if (config.drift_correction == "auto") {
    config.drift_correction = skewed && has_local_rounds(config) ? "scaffold" : "none";
  }
  if (config.local_rate == "auto") {
    config.local_rate = skewed && has_local_rounds(config) ? "round" : "step";
  }
  if (config.overlap == "auto" && skewed && is_paced(config)) {
    config.overlap = "off";
  }
}

void move_momentum_outside(TrainConfig& config) {
  if (!parts_differ(config) || !is_paced(config) || config.outer_optimizer != "auto" ||
      !uses_momentum(config.optimizer) || config.momentum == 0) {
    return;
  }
  config.outer_optimizer = std::exchange(config.optimizer, "sgd");
  config.outer_momentum = config.momentum;
  config.global_lr = config.global_lr.value_or(1);
}

void check_split(const TrainConfig& config) {
  if (config.split_by_class && config.split != "iid" && config.split != "class") {
    throw ConfigError(fmt::format(
        "split {} contradicts split-by-class, which is split class; leave one of them out",
        config.split));
  }
  if (config.weights == "data" && !averages_workers(config)) {
    throw ConfigError(fmt::format(
        "weights data needs a scheme that takes a mean over all workers: ssgd, local-sgd, diloco, "
        "esync or nbssgd without commit racy; found scheme {}; choose weights samples or uniform",
        config.scheme));
  }
}

}  // namespace syncopate
