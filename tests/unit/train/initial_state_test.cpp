// Goal:   independent first parameters have the spread of one draw, and what is no draw keeps its
//         value.
// Method: replicas of a drawn tensor and a constant one on four ranks of the simulator, for five
//         seeds.

#include "train/initial_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/config_options.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate {
namespace {

using testing::Each;

constexpr std::size_t half = 2000;

/// Its parameters are two tensors: weights, which are drawn, and γ = 1, as BatchNorm has it.
class HalfConstantReplica : public QuadraticReplica {
 public:
  HalfConstantReplica() : QuadraticReplica({.features = 2 * half}) {}

  std::vector<TensorInfo> layout(ReplicaVector which) const override {
    if (which == ReplicaVector::buffers) {
      return QuadraticReplica::layout(which);
    }
    const std::vector<std::int64_t> shape{half};
    return {{"weight", shape, 0}, {"gamma", shape, half}};
  }
  void initialise(std::uint64_t seed) override {
    QuadraticReplica::initialise(seed);
    const std::span<float> gamma = view(ReplicaVector::params).subspan(half);
    std::fill(gamma.begin(), gamma.end(), 1.0F);
  }
};

std::vector<std::vector<float>> initial_params(std::uint32_t workers, const TrainConfig& config) {
  return on_every_rank<std::vector<float>>(workers, [&](Group& group) {
    HalfConstantReplica replica;
    draw_initial_state(group, replica, config);
    const std::span<const float> params = replica.view(ReplicaVector::params);
    return std::vector<float>(params.begin(), params.end());
  });
}

double deviation(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) {
    squares += static_cast<double>(value) * value;
  }
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(InitialState, IndependentDrawsKeepTheSpreadAndLeaveConstantsAlone) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    TrainConfig config;
    set(config, "init", "independent");
    config.seed = seed;
    const auto params = initial_params(4, config);
    for (const auto& one : params) {
      EXPECT_EQ(one, params.front());
    }
    const std::span<const float> all(params.front());
    EXPECT_NEAR(deviation(all.first(half)), 0.1, 0.01);
    EXPECT_THAT(all.subspan(half), Each(1.0F));
  }
}

TEST(InitialState, OneWorkerDrawsAsItWouldByItself) {
  TrainConfig config;
  set(config, "init", "independent");
  const auto independent = initial_params(1, config);
  set(config, "init", "broadcast");
  EXPECT_EQ(independent, initial_params(1, config));
}

}  // namespace
}  // namespace syncopate
