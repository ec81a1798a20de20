// Goal:   every network accepts images of its smallest size, and of 28 and 32 pixels if these are
//         not smaller, gives one output per class, and trains: each parameter gets a gradient, and
//         a few steps lower the loss of a batch.
// Method: small batches of noise with fixed seeds, in evaluation mode and through a replica.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/checkpoint.hpp"
#include "spec/networks.hpp"
#include "tests/torch/examples.hpp"
#include "torch/factory.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

class EveryNetwork : public testing::TestWithParam<NetworkSpec> {
 protected:
  NetworkSettings settings(SampleShape input, std::uint32_t classes) const {
    return {.name = std::string(GetParam().name), .input = input, .classes = classes};
  }
};

TEST_P(EveryNetwork, GivesOneOutputPerClassAndLeavesItsInputAlone) {
  const std::uint32_t smallest = GetParam().smallest_side;
  for (const std::uint32_t side : {smallest, std::max(smallest, 28U), std::max(smallest, 32U)}) {
    const std::uint32_t channels = side == 28 ? 1 : 3;
    const Network network = build_network(settings({channels, side, side}, 7));
    network.module->eval();
    const torch::NoGradGuard no_grad;
    const torch::Tensor images = torch::randn({2, channels, side, side});
    const torch::Tensor before = images.clone();
    const torch::Tensor outputs = network.forward(images);
    EXPECT_EQ(outputs.sizes().vec(), (std::vector<std::int64_t>{2, 7})) << side;
    EXPECT_TRUE(outputs.isfinite().all().item<bool>()) << side;
    EXPECT_TRUE(images.equal(before)) << side;
    if (smallest > 32) break;
  }
}

/// Returns a learning rate that lowers the loss of eight images of noise within a few steps.
double rate_for(std::string_view network) {
  if (network == "alexnet") return 0.1;  // without BatchNorm, gradients are small at first
  if (network == "resnet50-v1") return 0.003;
  return network == "inception-v3" ? 0.01 : 0.03;
}

TEST_P(EveryNetwork, Trains) {
  const std::uint32_t side = std::max(32U, GetParam().smallest_side);
  const NetworkSettings network = settings({3, side, side}, 5);
  const auto replica = make_replica(
      network, {.optimizer = Optimizer::sgd, .learning_rate = rate_for(network.name)}, "cpu");
  replica->initialise(1);
  const Batch batch = random_batch(1, network.input, 8, network.classes);
  const double first = replica->backward(batch).loss_sum;
  const std::span<const float> gradient = replica->view(ReplicaVector::grads);
  for (const TensorInfo& tensor : replica->layout(ReplicaVector::params)) {
    const auto part = gradient.subspan(tensor.offset, values_in(tensor));
    EXPECT_TRUE(std::ranges::any_of(part, [](float value) { return value != 0; })) << tensor.name;
    EXPECT_TRUE(std::ranges::all_of(part, [](float value) { return std::isfinite(value); }))
        << tensor.name;
  }
  double last = first;
  for (int step = 0; step < 5; ++step) {
    replica->local_step();
    last = replica->backward(batch).loss_sum;
  }
  EXPECT_LT(last, 0.99 * first);
}

std::string test_name(const testing::TestParamInfo<NetworkSpec>& network) {
  std::string name(network.param.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Networks, EveryNetwork, testing::ValuesIn(all_networks()), test_name);

}  // namespace
}  // namespace syncopate::torch_backend
