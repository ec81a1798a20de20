#include "torch/seeded_draws.hpp"

#include <ATen/CPUGeneratorImpl.h>

namespace syncopate::torch_backend {
namespace {

/// Guards libtorch's own global, so it has to be one itself.
std::unique_lock<std::mutex> wait_for_turn() {
  static std::mutex draws;
  return std::unique_lock(draws);
}

}  // namespace

SeededDraws::SeededDraws(std::uint64_t seed)
    : turn_(wait_for_turn()), generator_(at::detail::getDefaultCPUGenerator()) {
  const std::lock_guard lock(generator_.mutex());
  state_before_ = generator_.get_state();
  generator_.set_current_seed(seed);
}

SeededDraws::~SeededDraws() {
  const std::lock_guard lock(generator_.mutex());
  generator_.set_state(state_before_);
}

}  // namespace syncopate::torch_backend
