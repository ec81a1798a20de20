#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "train/program_replica.hpp"

namespace syncopate::test {

/// The model of a program: vectors of its own, which SGD moves towards zero.
class PlainReplica final : public ProgramReplica {
 public:
  static constexpr std::size_t parameters = 1000;

  std::vector<TensorInfo> layout(ReplicaVector which) const override {
    if (which == ReplicaVector::buffers) {
      return {};
    }
    return {{.name = "all", .shape = {static_cast<std::int64_t>(parameters)}, .offset = 0}};
  }
  std::span<float> view(ReplicaVector which) override {
    return which == ReplicaVector::buffers ? std::span<float>()
                                           : values_[which == ReplicaVector::grads ? 1 : 0];
  }
  void store(ReplicaVector /*which*/) override {}
  OptimizerState optimizer_state() const override { throw InternalError("no checkpoints"); }
  void load_optimizer_state(const OptimizerState& /*state*/) override {}

  /// The gradient of |x|²/2.
  void compute_gradient() { values_[1] = values_[0]; }

  std::function<void()> on_step = [] {};  ///< called in each step of the optimizer

 private:
  void take_step(double rate_factor) override {
    on_step();
    for (std::size_t i = 0; i < parameters; ++i) {
      values_[0][i] -= static_cast<float>(0.01 * rate_factor) * values_[1][i];
    }
  }

  std::array<std::vector<float>, 2> values_{std::vector<float>(parameters, 1.0F),
                                            std::vector<float>(parameters)};
};

/// A path below the test's folder at which nothing lies.
inline std::string new_run_folder() {
  static int number = 0;
  const auto folder = std::filesystem::path(testing::TempDir()) /
                      ("run-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
  std::filesystem::remove_all(folder);
  return folder.string();
}

}  // namespace syncopate::test
