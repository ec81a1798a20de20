#pragma once

#include <syncopate.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <string>
#include <syncopate/error.hpp>

namespace syncopate {
inline namespace v0 {
namespace detail {

[[noreturn]] inline void refuse(const std::string& collective, const std::string& found) {
  throw ConfigError(collective + " takes dense tensors, found " + found);
}

/// Returns the values of a tensor contiguous in host memory: the tensor's own memory if it is so
/// already, else a copy. Errors: ConfigError for a sparse or undefined tensor.
inline torch::Tensor host_values(const std::string& collective, const torch::Tensor& tensor) {
  if (!tensor.defined()) {
    refuse(collective, "an undefined one: give it values before");
  }
  if (tensor.layout() != torch::kStrided) {
    refuse(collective, "a sparse one: call to_dense() before");
  }
  // The memory of a lazy view does not hold the values that it shows.
  return tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
}

/// As `host_values`, for a tensor that gets the result. Errors: also for an expanded tensor.
inline torch::Tensor host_values_to_change(const std::string& collective,
                                           const torch::Tensor& tensor) {
  const torch::Tensor host = host_values(collective, tensor);
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.stride(i) == 0 && tensor.size(i) > 1) {
      refuse(collective, "an expanded one, whose values share memory: call contiguous() before");
    }
  }
  return host;
}

/// Returns the name of a tensor's type, such as "float32", as in Python.
inline std::string type_name(const torch::Tensor& tensor) {
  const torch::ScalarType type = tensor.scalar_type();
  if (type == torch::kBFloat16) return "bfloat16";
  if (type == torch::kBool) return "bool";
  const std::string bits = std::to_string(8 * tensor.element_size());
  if (tensor.is_floating_point()) return "float" + bits;
  if (tensor.is_complex()) return "complex" + bits;
  return (type == torch::kUInt8 ? "uint" : "int") + bits;
}

/// Returns the type of a tensor's values for a reduction. Errors: ConfigError for an unsupported
/// type.
inline syncopate_type type_of(const torch::Tensor& tensor) {
  const torch::ScalarType type = tensor.scalar_type();
  if (type == torch::kFloat32) return SYNCOPATE_FLOAT32;
  if (type == torch::kFloat64) return SYNCOPATE_FLOAT64;
  if (type == torch::kInt32) return SYNCOPATE_INT32;
  if (type == torch::kInt64) return SYNCOPATE_INT64;
  if (type == torch::kBFloat16) return SYNCOPATE_BFLOAT16;
  if (type == torch::kFloat16) return SYNCOPATE_FLOAT16;
  if (type == torch::kInt8) return SYNCOPATE_INT8;
  if (type == torch::kUInt8) return SYNCOPATE_UINT8;
  throw ConfigError(
      std::string("allreduce takes tensors of Float, Double, Half, BFloat16, Char, Byte, Int or "
                  "Long, found ") +
      torch::toString(tensor.scalar_type()) + "; convert it by to(torch::kFloat32)");
}

}  // namespace detail
}  // namespace v0
}  // namespace syncopate
