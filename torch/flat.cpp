#include "torch/flat.hpp"

#include <fmt/core.h>
#include <torch/utils.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::torch_backend {
namespace {

std::int64_t values_in(const std::vector<NamedTensor>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [](auto sum, const auto& named) { return sum + named.tensor.numel(); });
}

void expect_float32(const NamedTensor& named) {
  if (named.tensor.scalar_type() == torch::kFloat32) return;
  throw ConfigError(fmt::format("tensor {} of the network is of type {}: a replica holds float32",
                                named.name, torch::toString(named.tensor.scalar_type())));
}

std::vector<TensorInfo> layout_of(const std::vector<NamedTensor>& tensors) {
  std::vector<TensorInfo> layout;
  std::size_t offset = 0;
  for (const NamedTensor& named : tensors) {
    expect_float32(named);
    layout.push_back({named.name, named.tensor.sizes().vec(), offset});
    offset += static_cast<std::size_t>(named.tensor.numel());
  }
  return layout;
}

/// Tied parameters are one tensor under several names.
void add_once(std::vector<NamedTensor>& tensors, const std::string& name,
              const torch::Tensor& tensor) {
  const bool known = std::any_of(tensors.begin(), tensors.end(), [&](const NamedTensor& other) {
    return other.tensor.is_same(tensor);
  });
  if (!known) tensors.push_back({name, tensor});
}

std::vector<NamedTensor> parameters(const torch::nn::Module& module, bool trained) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : module.named_parameters()) {
    if (item.value().requires_grad() == trained) add_once(tensors, item.key(), item.value());
  }
  return tensors;
}

}  // namespace

FlatVector::FlatVector(std::int64_t size, torch::Device device)
    : values_(torch::zeros({size}, torch::dtype(torch::kFloat32).device(device))) {}

std::span<float> FlatVector::view() {
  if (!values_.is_cpu()) {
    if (!pinned_.defined()) {
      pinned_ = torch::empty(values_.sizes(), torch::dtype(torch::kFloat32).pinned_memory(true));
    }
    pinned_.copy_(values_);
  }
  const torch::Tensor& host = values_.is_cpu() ? values_ : pinned_;
  return {host.data_ptr<float>(), static_cast<std::size_t>(host.numel())};
}

void FlatVector::move_into(std::shared_ptr<float> memory) {
  const std::span<const float> values = view();
  std::copy(values.begin(), values.end(), memory.get());
  float* const place = memory.get();
  using Owner = std::shared_ptr<float>;
  auto owner = std::make_unique<Owner>(std::move(memory));
  const auto let_go = [](void* held) { std::unique_ptr<Owner>(static_cast<Owner*>(held)); };
  // Views share the storage, not its address, so all of them move with it.
  values_.storage().set_data_ptr(at::DataPtr(place, owner.release(), let_go, values_.device()));
}

void FlatVector::store() {
  // The copy blocks, else the caller could write into memory that is still being read.
  if (pinned_.defined()) values_.copy_(pinned_);
}

std::vector<NamedTensor> trained_tensors(const torch::nn::Module& module) {
  return parameters(module, /*trained=*/true);
}

std::vector<NamedTensor> some_trained_tensors(const torch::nn::Module& module) {
  std::vector<NamedTensor> tensors = trained_tensors(module);
  if (tensors.empty()) throw ConfigError("the network has no parameter to train");
  return tensors;
}

std::vector<NamedTensor> untrained_tensors(const torch::nn::Module& module) {
  std::vector<NamedTensor> tensors = parameters(module, /*trained=*/false);
  for (const auto& item : module.named_buffers()) {
    if (item.value().is_floating_point()) add_once(tensors, item.key(), item.value());
  }
  return tensors;
}

FlatTensors::FlatTensors(std::vector<NamedTensor> tensors, torch::Device device)
    : tensors_(std::move(tensors)),
      layout_(layout_of(tensors_)),
      vector_(values_in(tensors_), device) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const torch::Tensor view = slice(values(), i);
    view.copy_(tensors_[i].tensor);
    tensors_[i].tensor.set_data(view);
  }
}

torch::Tensor FlatTensors::slice(const torch::Tensor& values, std::size_t index) const {
  const torch::Tensor& like = tensors_[index].tensor;
  const auto offset = static_cast<std::int64_t>(layout_[index].offset);
  return values.narrow(0, offset, like.numel()).view(like.sizes());
}

}  // namespace syncopate::torch_backend
