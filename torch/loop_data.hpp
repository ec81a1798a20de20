#pragma once

#include <torch/data/dataloader.h>
#include <torch/data/samplers/base.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace syncopate::torch_backend {

/// A sampler of libtorch's data loaders whose order comes from functions: the indices of the next
/// batch, or none at the end of an epoch; and the beginning of the next epoch.
///
/// A loader that prepares batches ahead asks again after the end of an epoch: it gets none until it
/// resets the sampler.
class SharedSampler final : public torch::data::samplers::Sampler<> {
 public:
  using Next = std::function<std::vector<std::size_t>()>;
  SharedSampler(Next next, std::function<void()> next_epoch)
      : next_(std::move(next)), next_epoch_(std::move(next_epoch)) {}

  void reset(torch::optional<std::size_t> new_size = {}) override;
  torch::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  /// Errors of both: ConfigError, since the job's seed decides the order.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  Next next_;
  std::function<void()> next_epoch_;
  bool ended_ = false;  ///< the epoch
};

}  // namespace syncopate::torch_backend
