#include "tests/torch/loops/small_problem.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

namespace syncopate::test {
namespace {

constexpr std::size_t samples = 64;
constexpr std::size_t pixels = 6;

}  // namespace

Linear::Linear() {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : parameters()) {
    const auto count = parameter.numel();
    parameter.copy_((torch::arange(count) / static_cast<double>(count) - 0.4)
                        .to(torch::kFloat32)
                        .view(parameter.sizes()));
  }
}

std::vector<float> values_of(const torch::nn::Module& module) {
  std::vector<float> values;
  for (const torch::Tensor& parameter : module.parameters()) {
    const torch::Tensor flat = parameter.detach().contiguous();
    values.insert(values.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }
  return values;
}

SmallData small_data() {
  SmallData data;
  std::minstd_rand random(3);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const auto label = static_cast<std::uint8_t>(sample % 3);
    data.labels.push_back(label);
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      data.pixels.push_back(
          static_cast<std::uint8_t>(random() % 120 + (pixel % 3 == label ? 130 : 0)));
    }
  }
  return data;
}

torch::data::Example<> SmallImages::get(std::size_t index) {
  torch::Tensor image = torch::empty({1, 2, 3});
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    const float value = static_cast<float>(data_.pixels[index * pixels + pixel]) / 255.0F;
    image.data_ptr<float>()[pixel] = (value - SmallData::mean) / SmallData::standard_deviation;
  }
  return {image, torch::tensor(static_cast<std::int64_t>(data_.labels[index]))};
}

std::string run_folder() {
  static int number = 0;
  const auto folder = std::filesystem::path(testing::TempDir()) /
                      ("loop-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
  std::filesystem::remove_all(folder);
  return folder.string();
}

}  // namespace syncopate::test
