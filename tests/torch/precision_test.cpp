// Goal:   with bf16 a network computes in bfloat16 and learns, while parameters and gradients stay
//         float32.
// Method: a module records the types of its values; replicas with and without bf16 start from the
//         same parameters, on each device of this machine.
#include "torch/precision.hpp"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "base/errors.hpp"
#include "tests/torch/examples.hpp"
#include "tests/torch/script_files.hpp"
#include "torch/device.hpp"
#include "torch/script_network.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::Each;
using testing::ElementsAre;

/// Tiny that records the types of its layers' outputs.
struct Noting : Tiny {
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor y = conv(x);
    types.push_back(y.scalar_type());
    outputs = fc(torch::relu(norm(y)).flatten(1));
    types.push_back(outputs.scalar_type());
    return outputs;
  }

  std::vector<torch::ScalarType> types;
  torch::Tensor outputs;
};

double relative_difference(const torch::Tensor& of, const torch::Tensor& from) {
  const torch::Tensor exact = from.detach().to(torch::kFloat64);
  return ((of.detach().to(torch::kFloat64) - exact).norm() / exact.norm()).item<double>();
}

class BFloat16 : public testing::TestWithParam<std::string> {
 protected:
  torch::Device device() const { return device_for(GetParam(), 0); }
  ModuleReplica::Options options(Precision precision) const {
    return {.device = device(), .precision = precision};
  }
};

TEST_P(BFloat16, ComputesInBfloat16WithParametersAndGradientsOfFloat32) {
  Watched<Noting> half(options(Precision::bf16));
  Watched<Noting> full(options(Precision::float32));
  half.replica.initialise(1);
  full.replica.initialise(1);
  const Batch batch = tiny_batch(1, 32);
  const PassResult of_half = half.replica.backward(batch);
  const PassResult of_full = full.replica.backward(batch);

  EXPECT_THAT(half.module->types, Each(torch::kBFloat16));
  EXPECT_THAT(full.module->types, Each(torch::kFloat32));
  const double difference = relative_difference(half.module->outputs, full.module->outputs);
  EXPECT_GT(difference, 1e-5);
  EXPECT_LT(difference, 2e-2);
  EXPECT_NEAR(of_half.loss_sum, of_full.loss_sum, 2e-2 * of_full.loss_sum);
  for (const torch::Tensor& parameter : half.module->parameters()) {
    EXPECT_EQ(parameter.scalar_type(), torch::kFloat32);
    EXPECT_EQ(parameter.grad().scalar_type(), torch::kFloat32);
  }
  const auto gradient = [](Watched<Noting>& of) {
    return torch::tensor(values_of(of.replica, ReplicaVector::grads));
  };
  EXPECT_LT(relative_difference(gradient(half), gradient(full)), 5e-2);
}

TEST_P(BFloat16, LearnsABatch) {
  Watched<Tiny> watched(options(Precision::bf16));
  watched.replica.initialise(1);
  watched.replica.set_learning_rate(0.02);
  const Batch batch = tiny_batch(1);
  const double before = watched.replica.backward(batch).loss_sum;
  double after = before;
  for (int step = 0; step < 60; ++step) {
    watched.replica.local_step();
    after = watched.replica.backward(batch).loss_sum;
  }
  EXPECT_LT(after, 0.5 * before) << "each pass converts the parameters that the step has changed";
}

TEST_P(BFloat16, IsThePrecisionOfEvaluationsAndStatisticsToo) {
  Watched<Noting> watched(options(Precision::bf16));
  watched.replica.evaluate(tiny_batch(1));
  int left = 1;
  watched.replica.recompute_statistics([&](Batch& into) {
    into = tiny_batch(2);
    return left-- > 0;
  });
  EXPECT_THAT(watched.module->types,
              ElementsAre(torch::kBFloat16, torch::kBFloat16, torch::kBFloat16, torch::kBFloat16));
}

TEST_P(BFloat16, EndsWithThePass) {
  Watched<Tiny> watched(options(Precision::bf16));
  watched.replica.backward(tiny_batch(1));
  const torch::Tensor values = torch::ones({2, 2}, device());
  EXPECT_EQ(torch::mm(values, values).scalar_type(), torch::kFloat32);
  EXPECT_THROW(watched.replica.backward(random_batch(1, {2, 6, 6}, 4, 3)), ConfigError);
  EXPECT_EQ(torch::mm(values, values).scalar_type(), torch::kFloat32) << "after a pass that failed";
}

TEST_P(BFloat16, IsThePrecisionOfAScript) {
  const std::string path = testing::TempDir() + "bf16.pt";
  script_classifier(36, 3).save(path);
  const auto replica_in = [&](Precision precision) {
    ModuleReplica::Options of_file = options(precision);
    of_file.build = [path] { return load_script_network(path); };
    of_file.make_optimizer = with_optimizer({.optimizer = Optimizer::sgd, .learning_rate = 0.1});
    return std::make_unique<ModuleReplica>(std::move(of_file));
  };
  const Batch batch = tiny_batch(1);
  const auto half = replica_in(Precision::bf16);
  const double loss = replica_in(Precision::float32)->backward(batch).loss_sum;
  const double of_half = half->backward(batch).loss_sum;
  EXPECT_NE(of_half, loss);
  EXPECT_NEAR(of_half, loss, 2e-2 * loss);
  half->local_step();
  EXPECT_LT(half->backward(batch).loss_sum, of_half);
}

std::vector<std::string> devices_of_this_machine() {
  return torch::cuda::device_count() > 0 ? std::vector<std::string>{"cpu", "cuda:0"}
                                         : std::vector<std::string>{"cpu"};
}

INSTANTIATE_TEST_SUITE_P(Devices, BFloat16, testing::ValuesIn(devices_of_this_machine()));

TEST(Autocast, IsNotNested) {
  const Autocast outer(Precision::bf16, torch::kCPU);
  EXPECT_NO_THROW(Autocast(Precision::float32, torch::kCPU));
  EXPECT_THROW(Autocast(Precision::bf16, torch::kCPU), InternalError);
}

}  // namespace
}  // namespace syncopate::torch_backend
