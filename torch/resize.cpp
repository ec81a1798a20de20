#include "torch/resize.hpp"

#include <ATen/ops/upsample_bilinear2d.h>

#include <optional>
#include <utility>

namespace syncopate::torch_backend {

Network build_behind_resize(NetworkSettings settings) {
  const std::uint32_t side = settings.resize.value();
  settings.input.height = settings.input.width = side;
  settings.resize.reset();
  Network network = build_network(settings);
  network.forward = [inner = std::move(network.forward), side](const torch::Tensor& images) {
    return inner(at::upsample_bilinear2d(images, {side, side}, /*align_corners=*/false));
  };
  return network;
}

}  // namespace syncopate::torch_backend
