// Goal:   initial parameters that workers draw independently keep BatchNorm's γ = 1 and β = 0, and
//         their combination has the variance of a single draw.
// Method: replicas of a convolution, BatchNorm and a linear layer on four ranks of the simulator.

#include "train/initial_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/config_options.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/torch/examples.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::Each;

std::vector<float> tensor_named(const std::string& name, Replica& replica) {
  for (const TensorInfo& tensor : replica.layout(ReplicaVector::params)) {
    if (tensor.name == name) {
      return copy(replica.view(ReplicaVector::params).subspan(tensor.offset, values_in(tensor)));
    }
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

struct InitialTensors {
  std::vector<float> weight;
  std::vector<float> gamma;
  std::vector<float> beta;
};

InitialTensors initial_tensors(Group& group, const TrainConfig& config) {
  Watched<Tiny> tiny({});
  draw_initial_state(group, tiny.replica, config);
  return {.weight = tensor_named("fc.weight", tiny.replica),
          .gamma = tensor_named("norm.weight", tiny.replica),
          .beta = tensor_named("norm.bias", tiny.replica)};
}

double sum_of_squares(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) {
    sum += static_cast<double>(value) * value;
  }
  return sum;
}

TEST(InitialState, IndependentDrawsLeaveBatchNormAlone) {
  double drawn_squares = 0;
  double independent_squares = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    TrainConfig config;
    set(config, "init", "independent");
    config.seed = seed;
    const auto tensors_of = [&](Group& group) { return initial_tensors(group, config); };
    const auto ranks = on_every_rank<InitialTensors>(4, tensors_of);
    for (const InitialTensors& tensors : ranks) {
      EXPECT_EQ(tensors.weight, ranks.front().weight);
      EXPECT_THAT(tensors.gamma, Each(1.0F));
      EXPECT_THAT(tensors.beta, Each(0.0F));
    }
    independent_squares += sum_of_squares(ranks.front().weight);
    drawn_squares += sum_of_squares(flattened({drawn<Tiny>(seed)->fc->weight}));
  }
  EXPECT_NEAR(independent_squares / drawn_squares, 1, 0.2);
}

}  // namespace
}  // namespace syncopate::torch_backend
