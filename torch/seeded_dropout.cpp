#include "torch/seeded_dropout.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include "base/random.hpp"

namespace syncopate::torch_backend {

SeededDropoutImpl::SeededDropoutImpl(double p)
    : p(p), passes(register_buffer("passes", torch::zeros({}, torch::kInt64))) {}

torch::Tensor SeededDropoutImpl::forward(const torch::Tensor& x) {
  if (!is_training()) return x;
  const auto pass = static_cast<std::uint64_t>(passes.item<std::int64_t>());
  passes += 1;
  const auto generator = at::detail::createCPUGenerator(Random(seed).fork("mask", pass).bits());
  const torch::Tensor kept = torch::empty(x.sizes(), torch::kFloat32).bernoulli_(1 - p, generator);
  return x * kept.div_(1 - p).to(x.options());
}

void seed_dropout(torch::nn::Module& module, std::uint64_t seed) {
  std::uint64_t layers = 0;
  for (const auto& submodule : module.modules()) {
    if (auto* const dropout = submodule->as<SeededDropoutImpl>()) {
      dropout->seed = Random(seed).fork("dropout layer", layers++).bits();
    }
  }
}

}  // namespace syncopate::torch_backend
