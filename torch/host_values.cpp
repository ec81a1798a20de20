#include "torch/host_values.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/errors.hpp"

namespace syncopate::torch_backend {
namespace {

template <class Value>
std::span<Value> values_as(const torch::Tensor& host) {
  return {static_cast<Value*>(host.data_ptr()), static_cast<std::size_t>(host.numel())};
}

}  // namespace

torch::Tensor host_values(const torch::Tensor& tensor) {
  return tensor.detach().cpu().contiguous();
}

std::span<std::byte> bytes_of(const torch::Tensor& host) {
  return {static_cast<std::byte*>(host.data_ptr()), host.nbytes()};
}

Summable summable(const torch::Tensor& host) {
  switch (host.scalar_type()) {
    case torch::kFloat32: return values_as<float>(host);
    case torch::kFloat64: return values_as<double>(host);
    case torch::kInt32: return values_as<std::int32_t>(host);
    case torch::kInt64: return values_as<std::int64_t>(host);
    case torch::kBFloat16: return values_as<Bfloat16>(host);
    default:
      throw ConfigError(
          fmt::format("allreduce takes tensors of Float, Double, Int, Long or BFloat16, found {}; "
                      "convert it by "
                      "to(torch::kFloat32)",
                      torch::toString(host.scalar_type())));
  }
}

}  // namespace syncopate::torch_backend
