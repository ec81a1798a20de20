// Goal:   independent first parameters have the spread of one draw, and what is no draw keeps its
//         value; at the end models are compared, also over a slow link.
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
using testing::StartsWith;

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

/// All workers have finished their last synchronization.
class AllFinished final : public FailureListener {
 public:
  std::vector<Rank> lost() const override { return {}; }
  void finished() override {}
  bool all_finished() const override { return true; }
  bool await_more(std::size_t /*known*/, TimePoint /*deadline*/) override { return true; }
};

/// The model takes ten seconds, so that the worker that receives it looks for news meanwhile.
TEST(InitialState, ModelsAreComparedAtTheEndOfAJobOverASlowLink) {
  const SimulatedGroup slow{.size = 2, .network = {.link = {.bandwidth = 4.0 * 2 * half / 10}}};
  for (const bool equal : {true, false}) {
    const auto ends = on_every_rank<std::string>(slow, [&](Group& group) -> std::string {
      AllFinished finished;
      const Group workers(group.world(), {.members = {group.node(Rank{0}), group.node(Rank{1})},
                                          .self = group.rank(),
                                          .failures = &finished});
      HalfConstantReplica replica;
      replica.initialise(equal ? 1 : 1 + group.rank().value);
      try {
        expect_same_model(workers, replica);
      } catch (const ConfigError& error) {
        return error.what();
      }
      return "equal";
    });
    EXPECT_THAT(ends, Each(StartsWith(equal ? "equal" : "the job ends with several models")));
  }
}

}  // namespace
}  // namespace syncopate
