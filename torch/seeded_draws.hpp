#pragma once

#include <torch/types.h>

#include <cstdint>
#include <mutex>

namespace syncopate::torch_backend {

/// While it lives, libtorch's default CPU generator starts from `seed`; after that it goes on as if
/// nothing had been drawn.
///
/// Thread: holds off other SeededDraws of the process, since the generator is one for all threads.
class SeededDraws {
 public:
  explicit SeededDraws(std::uint64_t seed);
  ~SeededDraws();
  SeededDraws(const SeededDraws&) = delete;
  SeededDraws& operator=(const SeededDraws&) = delete;

 private:
  std::unique_lock<std::mutex> turn_;
  torch::Generator generator_;
  torch::Tensor state_before_;
};

}  // namespace syncopate::torch_backend
