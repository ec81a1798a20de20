#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {
inline namespace v0 {
namespace flat {

/// A contiguous float32 vector on a device, with a view in host memory.
class FlatVector {
 public:
  /// Makes `size` zeros.
  FlatVector(std::int64_t size, torch::Device device)
      : values_(torch::zeros({size}, torch::dtype(torch::kFloat32).device(device))) {}

  const torch::Tensor& tensor() const { return values_; }
  std::size_t size() const { return static_cast<std::size_t>(values_.numel()); }

  /// Returns the vector itself on a CPU, otherwise a copy in host memory, refreshed by this call.
  /// Valid as long as the vector.
  float* view();
  /// On a CPU, makes `memory`, which has the size of the vector, the memory of the vector and of
  /// all its views. The values stay the same.
  void move_into(std::shared_ptr<float> memory);
  /// Copies the host copy to the device. Returns once the host copy may be written again.
  void store() {
    // The copy blocks; otherwise the caller could write memory that is still being read.
    if (host_.defined()) values_.copy_(host_);
  }

 private:
  torch::Tensor values_;
  torch::Tensor host_;  ///< undefined on a CPU, and before the first view
};

struct NamedTensor {
  std::string name;  ///< the module's name for it, "conv1.weight"
  torch::Tensor tensor;
};

/// Returns the trained parameters of a module, each once, under its first name.
std::vector<NamedTensor> trained_tensors(const torch::nn::Module& module);

/// As `trained_tensors`. Errors: std::invalid_argument for a module without trained parameters.
std::vector<NamedTensor> some_trained_tensors(const torch::nn::Module& module);

/// Returns the parameters of a module that are not trained, each once, under its first name.
std::vector<NamedTensor> frozen_tensors(const torch::nn::Module& module);

/// Returns the floating-point buffers of a module, which change without being trained, such as
/// running statistics.
std::vector<NamedTensor> floating_buffers(const torch::nn::Module& module);

/// Tensors of a module as views of one flat vector, in their order, without gaps.
class FlatTensors {
 public:
  /// Moves the values of `tensors` into a new vector on `device`, and makes the tensors views of
  /// it.
  /// Errors: std::invalid_argument for a tensor that is not float32.
  FlatTensors(std::vector<NamedTensor> tensors, torch::Device device);

  FlatVector& vector() { return vector_; }
  const torch::Tensor& values() const { return vector_.tensor(); }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  /// The offset of a tensor's first value in the vector.
  std::size_t offset(std::size_t index) const { return offsets_[index]; }

  /// Returns the part of `values`, a vector of the same length, that corresponds to tensor `index`.
  torch::Tensor slice(const torch::Tensor& values, std::size_t index) const {
    const torch::Tensor& like = tensors_[index].tensor;
    const auto begin = static_cast<std::int64_t>(offsets_[index]);
    return values.narrow(0, begin, like.numel()).view(like.sizes());
  }

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<std::size_t> offsets_;
  FlatVector vector_;
};

inline float* FlatVector::view() {
  if (values_.is_cpu()) {
    return values_.data_ptr<float>();
  }
  if (!host_.defined()) {
    // CUDA copies are faster from pinned memory; other devices may have no such memory.
    host_ = torch::empty(values_.sizes(),
                         torch::dtype(torch::kFloat32).pinned_memory(values_.is_cuda()));
  }
  host_.copy_(values_);
  return host_.data_ptr<float>();
}

inline void FlatVector::move_into(std::shared_ptr<float> memory) {
  float* const place = memory.get();
  std::copy_n(view(), size(), place);
  using Owner = std::shared_ptr<float>;
  auto owner = std::make_unique<Owner>(std::move(memory));
  const auto let_go = [](void* held) { std::unique_ptr<Owner>(static_cast<Owner*>(held)); };
  // Views share the storage object, not its address, so all of them move with it.
  values_.storage().set_data_ptr(at::DataPtr(place, owner.release(), let_go, values_.device()));
}

namespace detail {

inline std::int64_t values_in(const std::vector<NamedTensor>& tensors) {
  std::int64_t sum = 0;
  for (const NamedTensor& named : tensors) sum += named.tensor.numel();
  return sum;
}

inline void expect_float32(const NamedTensor& named) {
  if (named.tensor.scalar_type() != torch::kFloat32) {
    throw std::invalid_argument("tensor " + named.name + " of the network is of type " +
                                torch::toString(named.tensor.scalar_type()) +
                                ": a replica holds float32");
  }
}

inline std::vector<std::size_t> offsets_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::size_t> offsets;
  std::size_t offset = 0;
  for (const NamedTensor& named : tensors) {
    expect_float32(named);
    offsets.push_back(offset);
    offset += static_cast<std::size_t>(named.tensor.numel());
  }
  return offsets;
}

/// Adds a tensor unless it is in the list: tied parameters are one tensor under several names.
inline void add_once(std::vector<NamedTensor>& tensors, const std::string& name,
                     const torch::Tensor& tensor) {
  const auto is_same = [&](const NamedTensor& other) { return other.tensor.is_same(tensor); };
  if (std::none_of(tensors.begin(), tensors.end(), is_same)) tensors.push_back({name, tensor});
}

inline std::vector<NamedTensor> parameters(const torch::nn::Module& module, bool trained) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : module.named_parameters()) {
    if (item.value().requires_grad() == trained) add_once(tensors, item.key(), item.value());
  }
  return tensors;
}

}  // namespace detail

inline std::vector<NamedTensor> trained_tensors(const torch::nn::Module& module) {
  return detail::parameters(module, /*trained=*/true);
}

inline std::vector<NamedTensor> some_trained_tensors(const torch::nn::Module& module) {
  std::vector<NamedTensor> tensors = trained_tensors(module);
  if (tensors.empty()) throw std::invalid_argument("the network has no parameter to train");
  return tensors;
}

inline std::vector<NamedTensor> frozen_tensors(const torch::nn::Module& module) {
  return detail::parameters(module, /*trained=*/false);
}

inline std::vector<NamedTensor> floating_buffers(const torch::nn::Module& module) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : module.named_buffers()) {
    if (item.value().is_floating_point()) {
      detail::add_once(tensors, item.key(), item.value());
    }
  }
  return tensors;
}

inline FlatTensors::FlatTensors(std::vector<NamedTensor> tensors, torch::Device device)
    : tensors_(std::move(tensors)),
      offsets_(detail::offsets_of(tensors_)),
      vector_(detail::values_in(tensors_), device) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const torch::Tensor view = slice(values(), i);
    view.copy_(tensors_[i].tensor);
    tensors_[i].tensor.set_data(view);
  }
}

}  // namespace flat
}  // namespace v0
}  // namespace syncopate
