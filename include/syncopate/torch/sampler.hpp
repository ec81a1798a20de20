#pragma once

#include <torch/data/dataloader.h>
#include <torch/data/samplers/base.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <syncopate/error.hpp>
#include <syncopate/job.hpp>
#include <utility>
#include <vector>

namespace syncopate {
inline namespace v0 {

/// The order of a worker's share of a dataset, as a sampler for libtorch's data loaders. A batch
/// has the size of a step of this worker.
///
/// A loader that prepares batches ahead requests another batch after the end of an epoch: it gets
/// none until it resets the sampler.
class ShareSampler final : public torch::data::samplers::Sampler<> {
 public:
  /// Copies of the share advance together with the sampler.
  explicit ShareSampler(Share share) : share_(std::move(share)) {}

  /// Begins the next epoch; libtorch resets a sampler at the beginning of each epoch.
  void reset(torch::optional<std::size_t> /*new_size*/ = {}) override {
    share_.next_epoch();
    ended_ = false;
  }

  /// Returns the indices of the next step; none at the end of an epoch. The share determines the
  /// size.
  torch::optional<std::vector<std::size_t>> next(std::size_t /*batch_size*/) override {
    std::vector<std::size_t> indices = ended_ ? std::vector<std::size_t>() : share_.next();
    ended_ = indices.empty();
    if (ended_) return {};
    return indices;
  }

  /// Saves the position in the order, which itself follows from the job's seed. A loader that
  /// prepares batches ahead is further than its loop. At the end of an epoch it is the beginning of
  /// the next one. After `load`, the next loop over the loader continues from the loaded position,
  /// as `Share::resume` describes.
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("place", torch::tensor({static_cast<std::int64_t>(share_.epoch()),
                                          static_cast<std::int64_t>(share_.step())}));
  }
  /// Continues from the position that `save` has written. Errors: ConfigError for an invalid
  /// position.
  void load(torch::serialize::InputArchive& archive) override {
    torch::Tensor place;
    archive.read("place", place);
    if (place.scalar_type() != torch::kInt64 || place.numel() != 2 ||
        place.min().item<std::int64_t>() < 0) {
      throw ConfigError("the place of a sampler is an epoch and a step, from 0 on");
    }
    share_.resume(static_cast<std::size_t>(place[0].item<std::int64_t>()),
                  static_cast<std::size_t>(place[1].item<std::int64_t>()));
  }

 private:
  Share share_;
  bool ended_ = false;  ///< true once the epoch of the loader's loop has ended
};

}  // namespace v0
}  // namespace syncopate
