#include "cli/bench/random_batch.hpp"

namespace syncopate::cli {

Batch random_batch(std::uint32_t samples, std::uint32_t side, Random random) {
  Batch batch;
  batch.shape = {1, side, side};
  for (std::size_t i = 0; i < samples * batch.shape.values(); ++i) {
    batch.features.push_back(static_cast<float>(random.normal()));
  }
  for (std::uint32_t i = 0; i < samples; ++i) {
    batch.labels.push_back(static_cast<std::int64_t>(random.below(random_batch_classes)));
  }
  return batch;
}

}  // namespace syncopate::cli
