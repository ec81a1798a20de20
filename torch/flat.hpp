#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scheme/replica.hpp"

namespace syncopate::torch_backend {

/// A contiguous float32 vector on a device, seen from the host as a span.
class FlatVector {
 public:
  /// `size` zeros.
  FlatVector(std::int64_t size, torch::Device device);

  const torch::Tensor& tensor() const { return values_; }

  /// On a CPU the vector itself, elsewhere a pinned copy, refreshed by this call. Valid as long as
  /// the vector.
  std::span<float> view();
  /// On a CPU, makes `memory`, which has room for as many values, the memory of the vector and of
  /// all its views.
  void move_into(std::shared_ptr<float> memory);
  /// Copies the pinned copy to the device. Returns when it may be written again.
  void store();

 private:
  torch::Tensor values_;
  torch::Tensor pinned_;  ///< undefined on a CPU, and before the first view
};

struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

/// The parameters of a module that are trained, each once, under the first of its names.
std::vector<NamedTensor> trained_tensors(const torch::nn::Module& module);

/// The same. Errors: ConfigError, for a module without any.
std::vector<NamedTensor> some_trained_tensors(const torch::nn::Module& module);

/// The floating state of a module that is not trained: frozen parameters and floating buffers.
std::vector<NamedTensor> untrained_tensors(const torch::nn::Module& module);

/// Tensors of a module as views of one flat vector, in their order, without gaps.
class FlatTensors {
 public:
  /// Moves the values of `tensors` into a new vector on `device`, and makes the tensors views of
  /// it.
  /// Errors: ConfigError, for a tensor that is not float32.
  FlatTensors(std::vector<NamedTensor> tensors, torch::Device device);

  FlatVector& vector() { return vector_; }
  const torch::Tensor& values() const { return vector_.tensor(); }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  const std::vector<TensorInfo>& layout() const { return layout_; }

  /// The part of `values`, a vector of the same length, that tensor `index` would be a view of.
  torch::Tensor slice(const torch::Tensor& values, std::size_t index) const;

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<TensorInfo> layout_;
  FlatVector vector_;
};

}  // namespace syncopate::torch_backend
