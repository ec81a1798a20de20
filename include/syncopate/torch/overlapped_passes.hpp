#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <syncopate/error.hpp>
#include <syncopate/torch/gradient_hooks.hpp>
#include <syncopate/torch/module_replica.hpp>
#include <syncopate/training.hpp>
#include <utility>
#include <vector>

namespace syncopate {
inline namespace v0 {
namespace detail {

/// Reports the gradients of a module to a training while a backward pass computes them.
///
/// The first gradient begins the pass of a step, so the number of samples must be known before. The
/// gradient of a parameter that the pass does not use is final at the step.
///
/// Thread: that of the pass.
class OverlappedPasses {
 public:
  /// Both must outlive this object. Errors: ConfigError for a module that is not on a CPU.
  OverlappedPasses(Training& training, ModuleReplica& replica);

  /// Sets the samples of the next step. Errors: ConfigError once its pass has begun.
  void expect(std::uint32_t samples);
  /// While paused, passes add to the gradients and are not the last one of their step.
  void pause(bool paused) { paused_ = paused; }
  /// Checks that no pass is under way before an operation that excludes one. Errors: ConfigError.
  void expect_none_under_way(const std::string& what) const;
  /// Ends the pass before the step of `samples`. Errors: ConfigError if the pass began with another
  /// number, or a gradient was changed after it.
  void end_pass(std::uint32_t samples);

 private:
  static std::vector<torch::Tensor> parameters_of(const ModuleReplica& replica);
  /// True if no gradient was changed or replaced since it was reported.
  bool are_untouched() const;
  void complete(std::size_t tensor);
  void begin();

  Training& training_;
  ModuleReplica& replica_;
  bool paused_ = false;
  bool under_way_ = false;
  std::optional<std::uint32_t> samples_ = {};  ///< of the next step, or of the running pass
  std::int64_t version_ = 0;                   ///< of the gradients, at the last report
  std::vector<bool> reported_;                 ///< by parameter
  GradientHooks hooks_;                        ///< last member: it calls this object
};

inline OverlappedPasses::OverlappedPasses(Training& training, ModuleReplica& replica)
    : training_(training),
      replica_(replica),
      reported_(replica.tensors().size(), false),
      hooks_(parameters_of(replica), [this](std::size_t tensor) { complete(tensor); }) {
  const torch::Device device = replica.gradients().device();
  if (!device.is_cpu()) {
    throw ConfigError("overlap on needs a module on the CPU, found " + device.str() +
                      "; leave the option out");
  }
}

inline std::vector<torch::Tensor> OverlappedPasses::parameters_of(const ModuleReplica& replica) {
  std::vector<torch::Tensor> parameters;
  for (const flat::NamedTensor& named : replica.tensors()) parameters.push_back(named.tensor);
  return parameters;
}

inline void OverlappedPasses::expect(std::uint32_t samples) {
  if (under_way_) {
    throw ConfigError("the pass of this step has begun with " + std::to_string(*samples_) +
                      " samples: call expect before backward");
  }
  samples_ = samples;
}

inline void OverlappedPasses::expect_none_under_way(const std::string& what) const {
  if (under_way_) {
    throw ConfigError(what +
                      " between a backward pass and its step: with overlap on gradients are on "
                      "their way to the other workers then");
  }
}

inline void OverlappedPasses::end_pass(std::uint32_t samples) {
  const bool untouched = are_untouched();
  const bool begun = std::exchange(under_way_, false);
  const std::optional<std::uint32_t> expected = std::exchange(samples_, std::nullopt);
  reported_.assign(reported_.size(), false);
  if (!begun) return;  // all passes of the step were paused: everything is sent at the step
  if (samples != *expected) {
    throw ConfigError("the step has a weight of " + std::to_string(samples) +
                      ", but its gradients left with one of " + std::to_string(*expected) +
                      ": call expect before backward");
  }
  if (!untouched) {
    throw ConfigError(
        "a gradient was changed between its backward pass and the step: with overlap on it is on "
        "its way to the other workers then; leave the option out to clip or scale gradients");
  }
}

inline bool OverlappedPasses::are_untouched() const {
  for (std::size_t i = 0; i < reported_.size(); ++i) {
    if (reported_[i] && !replica_.has_gradient_in_place(i)) return false;
  }
  return replica_.gradients()._version() == version_;
}

inline void OverlappedPasses::complete(std::size_t tensor) {
  if (paused_) return;
  if (reported_[tensor]) {
    throw ConfigError("a second backward pass before step has reached " +
                      replica_.tensors()[tensor].name +
                      ", whose gradient has left: with overlap on, let all passes of a step but "
                      "the last one run while no_sync() holds");
  }
  if (!under_way_) begin();
  replica_.collect(tensor);
  reported_[tensor] = true;
  version_ = replica_.gradients()._version();
  training_.gradients_ready(replica_.offset(tensor),
                            static_cast<std::size_t>(replica_.tensors()[tensor].tensor.numel()));
}

inline void OverlappedPasses::begin() {
  if (!samples_) {
    throw ConfigError(
        "with overlap on the samples of a step are to be known before backward: call "
        "optimizer.expect(samples)");
  }
  training_.begin_pass(*samples_);
  under_way_ = true;
}

}  // namespace detail
}  // namespace v0
}  // namespace syncopate
