#include "torch/models/memory_order.hpp"

namespace syncopate::torch_backend {

torch::Tensor channels_last_on_cpu(const torch::Tensor& images) {
  if (!images.is_cpu()) return images;
  if (images.size(1) > 1) return images.contiguous(torch::MemoryFormat::ChannelsLast);
  // With one channel both orders are the same memory, and libtorch decides by the strides.
  const std::int64_t height = images.size(2);
  const std::int64_t width = images.size(3);
  return images.contiguous().as_strided(images.sizes(), {height * width, 1, width, 1});
}

}  // namespace syncopate::torch_backend
