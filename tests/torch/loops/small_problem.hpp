#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

// A small problem for tests that compare the built-in loop with programs that have their own.
// Includes none of the project's headers: the library and its front end have classes of the same
// names.
namespace syncopate::test {

/// A linear classifier of 6 values with fixed initial parameters.
struct Linear : torch::nn::Module {
  Linear();
  torch::Tensor forward(const torch::Tensor& x) { return layer(x.flatten(1)); }
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(6, 3))};
};

std::vector<float> values_of(const torch::nn::Module& module);

/// 64 images of 2×3 pixels in three classes.
struct SmallData {
  static constexpr float mean = 0.4F;  ///< of pixels scaled to [0, 1]
  static constexpr float standard_deviation = 0.3F;
  std::vector<std::uint8_t> pixels = {};
  std::vector<std::uint8_t> labels = {};
};
SmallData small_data();

/// The same as a dataset of libtorch, normalised.
class SmallImages : public torch::data::Dataset<SmallImages> {
 public:
  torch::data::Example<> get(std::size_t index) override;
  torch::optional<std::size_t> size() const override { return data_.labels.size(); }

 private:
  SmallData data_ = small_data();
};

/// Returns a new folder for the files of a job.
std::string run_folder();

/// Trains by the built-in loop, in the simulator: three epochs of SGD with learning rate 0.1 and
/// momentum 0.9, with batches of 8 samples per worker. Returns the parameters of the first worker.
inline constexpr int epochs = 3;
inline constexpr std::size_t batch_size = 8;
std::vector<float> train_by_job(const std::string& scheme, std::uint32_t workers,
                                const std::map<std::string, std::string>& options);

/// Returns the names of all schemes with more than one worker.
std::vector<std::string> distributed_schemes();

}  // namespace syncopate::test
