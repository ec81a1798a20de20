#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <syncopate/torch.hpp>
#include <vector>

#include "job/program/program_host.hpp"
#include "runtime/real_world.hpp"

namespace syncopate::test {

/// A linear classifier of 6 values whose first parameters are always the same.
struct Linear : torch::nn::Module {
  Linear();
  torch::Tensor forward(const torch::Tensor& x) { return layer(x.flatten(1)); }
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(6, 3))};
};

std::vector<float> values_of(const torch::nn::Module& module);

/// 64 images of 2×3 pixels in three classes.
Dataset small_dataset();

/// The same as a dataset of libtorch, normalised as `gather` does.
class SmallImages : public torch::data::Dataset<SmallImages> {
 public:
  torch::data::Example<> get(std::size_t index) override;
  torch::optional<std::size_t> size() const override { return data_.train.samples(); }

 private:
  syncopate::Dataset data_ = small_dataset();
};

/// The coordinator of programs that are threads of this process.
class ThreadedPrograms {
 public:
  explicit ThreadedPrograms(std::uint32_t programs);

  using Program = std::function<void(const JobEntry& entry)>;
  /// Runs the program once for each worker, in a thread each, and then the coordinator to its end.
  /// Returns the message of the error that ended each; empty for one that ended well.
  std::vector<std::string> run(const Program& program);

  /// The message of the error that ended the job, after `run`.
  const std::string& failure() const { return failure_; }

 private:
  std::uint32_t programs_;
  std::string key_;
  std::string address_;
  std::string failure_;
  RealWorld world_;
};

/// A new folder for the files of a job.
std::string run_folder();

/// A loop of `epochs` epochs over the small dataset by SGD with momentum 0.9 and rate 0.1. Returns
/// the final parameters.
std::vector<float> train_by_loop(const InitOptions& init, std::size_t batch_size, int epochs);

}  // namespace syncopate::test
