#pragma once

#include <torch/data/dataloader.h>
#include <torch/data/samplers/base.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <cstddef>
#include <syncopate/error.hpp>
#include <syncopate/job.hpp>
#include <utility>
#include <vector>

namespace syncopate {
inline namespace v0 {

/// The order of a worker's share of a dataset, as a sampler of libtorch's data loaders. A batch has
/// the size of a step of this worker.
///
/// A loader that prepares batches ahead asks again after the end of an epoch: it gets none until it
/// resets the sampler.
class ShareSampler final : public torch::data::samplers::Sampler<> {
 public:
  explicit ShareSampler(Share share) : share_(std::move(share)) {}

  /// libtorch resets a sampler at the beginning of each epoch.
  void reset(torch::optional<std::size_t> /*new_size*/ = {}) override {
    share_.next_epoch();
    ended_ = false;
  }

  torch::optional<std::vector<std::size_t>> next(std::size_t /*batch_size*/) override {
    std::vector<std::size_t> indices = ended_ ? std::vector<std::size_t>() : share_.next();
    ended_ = indices.empty();
    if (ended_) return {};
    return indices;
  }

  /// Errors of both: ConfigError, since the job's seed decides the order.
  void save(torch::serialize::OutputArchive& /*archive*/) const override {
    throw ConfigError(
        "the order of a partitioned dataset follows from the job's seed: save the seed");
  }
  void load(torch::serialize::InputArchive& /*archive*/) override {
    throw ConfigError(
        "the order of a partitioned dataset follows from the job's seed: set the seed");
  }

 private:
  Share share_;
  bool ended_ = false;  ///< the epoch
};

}  // namespace v0
}  // namespace syncopate
