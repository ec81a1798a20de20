#include "torch/loop_data.hpp"

#include <utility>

#include "base/errors.hpp"

namespace syncopate::torch_backend {

/// libtorch resets a sampler at the beginning of each epoch.
void SharedSampler::reset(torch::optional<std::size_t> /*new_size*/) {
  next_epoch_();
  ended_ = false;
}

torch::optional<std::vector<std::size_t>> SharedSampler::next(std::size_t /*batch_size*/) {
  std::vector<std::size_t> indices = ended_ ? std::vector<std::size_t>() : next_();
  if (indices.empty()) {
    ended_ = true;
    return {};
  }
  return indices;
}

void SharedSampler::save(torch::serialize::OutputArchive& /*archive*/) const {
  throw ConfigError(
      "the order of a partitioned dataset follows from the job's seed: save the seed");
}

void SharedSampler::load(torch::serialize::InputArchive& /*archive*/) {
  throw ConfigError("the order of a partitioned dataset follows from the job's seed: set the seed");
}

}  // namespace syncopate::torch_backend
