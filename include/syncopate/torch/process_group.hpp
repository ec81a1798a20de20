#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <syncopate/training.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

/// Process groups of torch as the engine of a training's sums. Needs a libtorch with
/// torch.distributed.
namespace syncopate {
inline namespace v0 {

/// Sums by a process group of torch that takes tensors of the CPU: for
/// `DistributedOptions::sums`, with option `aggregate` `torch`. Its ranks are those of
/// `Job::ranks_of_sums`, in any order; on other workers it may be null. Only the training uses it.
inline Training::Sums sums_of(c10::intrusive_ptr<c10d::ProcessGroup> group) {
  if (!group) {
    return {[](float*, std::size_t) { throw ConfigError("this worker has no process group"); }, 0};
  }
  const auto members = static_cast<std::uint32_t>(group->getSize());
  return {[group = std::move(group)](float* values, std::size_t count) {
            std::vector<torch::Tensor> tensors{
                torch::from_blob(values, {static_cast<std::int64_t>(count)}, torch::kFloat32)};
            group->allreduce(tensors)->wait();
          },
          members};
}

}  // namespace v0
}  // namespace syncopate
