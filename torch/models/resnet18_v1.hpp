#pragma once

#include <cstdint>

#include "data/batch.hpp"
#include "torch/network.hpp"

namespace syncopate::torch_backend {

/// ResNet-18 in its first version (He et al. 2015, arXiv:1512.03385): 7×7 stem, four stages of two
/// basic blocks, ReLU after the addition, a projection (option B) where the shape changes.
/// 11,175,370 parameters for one channel and 10 classes. Takes images of any size; to train on
/// batches of one sample they need to be larger than 32×32, since BatchNorm needs two values a
/// channel.
Network make_resnet18_v1(const SampleShape& input, std::uint32_t classes);

}  // namespace syncopate::torch_backend
