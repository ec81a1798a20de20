#pragma once

#include <torch/torch.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

/// CIFAR-10 in its binary version: files of records of one label and 3×32×32 bytes.
class Cifar10 : public torch::data::Dataset<Cifar10> {
 public:
  /// The files of `folder` whose names are given. Errors: std::runtime_error, for one that is
  /// missing or is not of whole records.
  Cifar10(const std::string& folder, const std::vector<std::string>& names) {
    std::vector<torch::Tensor> images, labels;
    for (const std::string& name : names) {
      const torch::Tensor records = records_of(folder + "/" + name);
      images.push_back(records.narrow(1, 1, 3 * 32 * 32).view({-1, 3, 32, 32}));
      labels.push_back(records.select(1, 0).to(torch::kInt64));
    }
    images_ = (torch::cat(images).to(torch::kFloat32) / 255 - 0.473) / 0.251;
    labels_ = torch::cat(labels);
  }

  torch::data::Example<> get(std::size_t index) override {
    const auto at = static_cast<std::int64_t>(index);
    return {images_[at], labels_[at]};
  }
  torch::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(labels_.size(0));
  }

  const torch::Tensor& images() const { return images_; }
  const torch::Tensor& labels() const { return labels_; }

 private:
  static torch::Tensor records_of(const std::string& path) {
    constexpr std::int64_t record = 1 + 3 * 32 * 32;
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (!file || size == 0 || size % record != 0) {
      throw std::runtime_error(path + ": expected a file of records of 3073 bytes");
    }
    return torch::from_blob(bytes.data(), {size / record, record}, torch::kUInt8).clone();
  }

  torch::Tensor images_, labels_;
};
