#pragma once

#include "torch/network_module.hpp"

namespace syncopate::torch_backend {

/// The network of `settings`, which have `resize`, built for images of that side and behind a
/// bilinear interpolation to it, without antialiasing (torch.nn.functional.interpolate with
/// align_corners=False). The interpolation runs on the device of the images.
/// Errors: ConfigError if the network cannot take images of that side.
Network build_behind_resize(NetworkSettings settings);

}  // namespace syncopate::torch_backend
