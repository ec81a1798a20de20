#pragma once

#include <torch/types.h>

#include <cstddef>
#include <span>

#include "collective/summable.hpp"

namespace syncopate::torch_backend {

/// The values of a tensor next to each other in the memory of the host: the tensor's own, where
/// they are so already, else a copy.
torch::Tensor host_values(const torch::Tensor& tensor);

/// The memory of such values.
std::span<std::byte> bytes_of(const torch::Tensor& host);

/// Such values as what can be summed. Errors: ConfigError, for another type of values.
Summable summable(const torch::Tensor& host);

}  // namespace syncopate::torch_backend
