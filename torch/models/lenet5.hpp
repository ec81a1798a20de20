#pragma once

#include <cstdint>

#include "data/batch.hpp"
#include "torch/network.hpp"

namespace syncopate::torch_backend {

/// LeNet-5 (LeCun et al. 1998) as it is trained today: convolutions of 6 and 16 filters of 5×5, the
/// first with a padding of 2, each with max-pooling and ReLU, then linear layers of 120, 84 and
/// `classes` units. 61,706 parameters for 1×28×28 and 10 classes.
/// Errors: ConfigError, for images of less than 12×12.
Network make_lenet5(const SampleShape& input, std::uint32_t classes);

}  // namespace syncopate::torch_backend
