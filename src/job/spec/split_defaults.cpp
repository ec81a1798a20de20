#include "job/spec/split_defaults.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"

namespace syncopate {
void resolve_split(TrainConfig& config) {
  config.split = split_of(config).to_string();
  config.split_by_class = false;
  if (!config.weights) {
    const bool by_data = parts_differ(config) && averages_workers(config);
    config.weights = by_data ? Weights::data : Weights::samples;
  }
}

void check_split(const TrainConfig& config) {
  if (config.split_by_class && config.split != "iid" && config.split != "class") {
    throw ConfigError(fmt::format(
        "split {} contradicts split-by-class, which is split class; leave one of them out",
        config.split));
  }
  if (config.weights == Weights::data && !averages_workers(config)) {
    throw ConfigError(fmt::format(
        "weights data needs a scheme that takes a mean over all workers: ssgd, local-sgd, diloco, "
        "esync or nbssgd without commit racy; found scheme {}; choose weights samples or uniform",
        config.scheme));
  }
}

}  // namespace syncopate
