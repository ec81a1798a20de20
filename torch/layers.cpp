#include "torch/layers.hpp"

namespace syncopate::torch_backend {

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                              std::int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

ConvBnImpl::ConvBnImpl(torch::nn::Conv2dOptions options, Activation activation, double epsilon)
    : conv(register_module("conv", torch::nn::Conv2d(options.bias(false)))),
      bn(register_module("bn",
                         torch::nn::BatchNorm2d(
                             torch::nn::BatchNorm2dOptions(options.out_channels()).eps(epsilon)))),
      activation(activation) {}

torch::Tensor ConvBnImpl::forward(const torch::Tensor& images) {
  torch::Tensor x = bn(conv(images));
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x.relu_();
    case Activation::relu6: return x.clamp_(0, 6);
  }
  return x;
}

torch::Tensor channel_means(const torch::Tensor& images) {
  return torch::adaptive_avg_pool2d(images, {1, 1}).flatten(1);
}

torch::Tensor channels_last_on_cpu(const torch::Tensor& images) {
  if (!images.is_cpu()) return images;
  if (images.size(1) > 1) return images.contiguous(torch::MemoryFormat::ChannelsLast);
  // With one channel both orders are the same memory, and libtorch decides by the strides.
  const std::int64_t height = images.size(2);
  const std::int64_t width = images.size(3);
  return images.contiguous().as_strided(images.sizes(), {height * width, 1, width, 1});
}

}  // namespace syncopate::torch_backend
