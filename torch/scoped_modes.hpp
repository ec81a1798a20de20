#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

/// Modes of a module, or of libtorch, that last as long as an object.
namespace syncopate::torch_backend {

/// Puts a module into evaluation mode. The destructor gives each submodule its own mode again.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& module);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::shared_ptr<torch::nn::Module>> submodules_;
  std::vector<bool> was_training_;
};

/// Restarts the running statistics of a module's BatchNorm layers as the mean over all batches that
/// pass through (torch.optim.swa_utils.update_bn), and puts all other layers into evaluation mode.
/// The destructor gives each submodule its own mode and momentum again.
class StatisticsMode {
 public:
  explicit StatisticsMode(torch::nn::Module& module);
  ~StatisticsMode();
  StatisticsMode(const StatisticsMode&) = delete;
  StatisticsMode& operator=(const StatisticsMode&) = delete;

  /// True if a layer keeps running statistics.
  bool has_statistics() const { return !restore_.empty() || !script_layers_.empty(); }

  /// Called before and after the pass over a batch.
  void begin_batch();
  void end_batch();

 private:
  /// A layer of a script, whose momentum cannot change. Each batch finds statistics of 0, so that
  /// it leaves its own ones times the momentum.
  struct ScriptLayer {
    std::array<torch::Tensor, 2> statistics{};  ///< running_mean, running_var
    torch::Tensor batches{};                    ///< num_batches_tracked; undefined if there is none
    double momentum = 1;
    std::array<torch::Tensor, 2> sums{};  ///< of the batches' own, in float64
    double count = 0;                     ///< of batches
  };

  template <class Layer>
  void reset_if(torch::nn::Module& submodule);
  void add_if_script(torch::nn::Module& submodule);

  EvaluationMode evaluation_;  ///< ends last, and restores the mode of each submodule
  std::vector<std::function<void()>> restore_;
  std::vector<ScriptLayer> script_layers_;
};

/// Starts libtorch's default CPU generator from `seed`. The destructor restores the generator's
/// earlier state.
///
/// Thread: one SeededDraws exists at a time in a process; another one waits, because all threads
///         share the generator.
class SeededDraws {
 public:
  explicit SeededDraws(std::uint64_t seed);
  ~SeededDraws();
  SeededDraws(const SeededDraws&) = delete;
  SeededDraws& operator=(const SeededDraws&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  torch::Generator generator_;
  torch::Tensor state_before_;
};

}  // namespace syncopate::torch_backend
