// Goal:   the passes of a replica give the same gradients, figures and initial parameters as a
//         plain copy of the module in libtorch; evaluation changes nothing; the replica learns.
// Method: a plain module with the parameters of the same seed makes the same passes as the replica,
//         on each device of this machine; random batches by seed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/nn/utils/clip_grad.h>

#include <algorithm>
#include <atomic>

#include "base/errors.hpp"
#include "tests/torch/examples.hpp"
#include "torch/device.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::Each;
using testing::FloatNear;
using testing::Ne;
using testing::Pointwise;

/// Returns the error of a backward pass over `batch`, or "none".
std::string refusal(Replica& replica, const Batch& batch) {
  try {
    replica.backward(batch);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

class ReplicaPasses : public testing::TestWithParam<std::string> {
 protected:
  torch::Device device() const { return device_for(GetParam(), 0); }
  /// Kernels of other devices add in another order, so their tolerance is larger.
  float tolerance() const { return device().is_cpu() ? 1e-6F : 1e-4F; }
};

TEST_P(ReplicaPasses, GiveTheGradientOfAPlainModule) {
  Watched<Tiny> watched({.device = device()});
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    const Batch batch = tiny_batch(seed);
    watched.replica.initialise(seed);
    const PassResult result = watched.replica.backward(batch);

    const auto plain = drawn<Tiny>(seed);
    const torch::Tensor labels = torch::tensor(batch.labels);
    const torch::Tensor outputs = plain->forward(features_of(batch));
    const torch::Tensor loss = torch::cross_entropy_loss(outputs, labels);
    loss.backward();
    EXPECT_THAT(values_of(watched.replica, ReplicaVector::grads),
                Pointwise(FloatNear(tolerance()), flattened(gradients_of(*plain))));
    EXPECT_EQ(result.samples, 8U);
    EXPECT_NEAR(result.loss_sum, 8 * loss.item<double>(), 8 * tolerance());
    EXPECT_EQ(result.correct, outputs.argmax(1).eq(labels).sum().item<std::int64_t>());
  }
}

TEST_P(ReplicaPasses, AreFollowedByStepsThatClipTheGradientAsTorchDoes) {
  const auto plain = drawn<Tiny>(1);
  torch::cross_entropy_loss(plain->forward(features_of(tiny_batch(1))),
                            torch::tensor(tiny_batch(1).labels))
      .backward();
  const std::vector<float> whole = flattened(gradients_of(*plain));
  const double norm = torch::nn::utils::clip_grad_norm_(plain->parameters(), 0.1);
  ASSERT_GT(norm, 0.1);
  for (const double limit : {0.1, 2 * norm}) {
    SCOPED_TRACE(limit);
    Watched<Tiny> watched({.device = device(), .clip_norm = limit});
    watched.replica.initialise(1);
    watched.replica.backward(tiny_batch(1));
    watched.replica.local_step();
    EXPECT_THAT(
        values_of(watched.replica, ReplicaVector::grads),
        Pointwise(FloatNear(tolerance()), limit < norm ? flattened(gradients_of(*plain)) : whole));
  }
}

TEST_P(ReplicaPasses, SetTheGradientAnewEachTime) {
  Watched<Tiny> watched({.device = device()});
  watched.replica.initialise(1);
  watched.module->norm->eval();  // otherwise the second pass has other statistics
  watched.replica.backward(tiny_batch(1));
  const std::vector<float> once = values_of(watched.replica, ReplicaVector::grads);
  watched.replica.backward(tiny_batch(1));
  EXPECT_THAT(values_of(watched.replica, ReplicaVector::grads),
              Pointwise(FloatNear(tolerance()), once));
}

TEST_P(ReplicaPasses, ReportTheirProgressWhileTheyAreUnderWay) {
  Watched<Tiny> watched({.device = device()});
  std::atomic<int> operators = 0;
  std::atomic<int> gradients = 0;
  watched.replica.on_progress(PassDetail::gradients, [&] { ++gradients; });
  watched.replica.backward(tiny_batch(1));
  EXPECT_EQ(gradients, 6) << "weights and biases of the three layers";
  watched.replica.on_progress(PassDetail::operators, [&] { ++operators; });
  watched.replica.backward(tiny_batch(1));
  const int once = operators;
  EXPECT_GT(once, 10) << "a convolution, BatchNorm, a linear layer and their gradients";
  watched.replica.backward(tiny_batch(1));
  EXPECT_GT(operators, once);
  const int twice = operators;
  watched.replica.evaluate(tiny_batch(1));
  EXPECT_EQ(operators, twice) << "nobody waits for an evaluation";
  watched.replica.on_progress(PassDetail::gradients, {});
  watched.replica.backward(tiny_batch(1));
  EXPECT_EQ(operators, twice);
  EXPECT_EQ(gradients, 6);
}

TEST_P(ReplicaPasses, GiveNoGradientForNoSample) {
  Watched<Tiny> watched({.device = device()});
  watched.replica.backward(tiny_batch(1));
  const PassResult result = watched.replica.backward(Batch{tiny_shape, {}, {}});
  EXPECT_EQ(result.samples, 0U);
  EXPECT_EQ(result.loss_sum, 0);
  EXPECT_THAT(values_of(watched.replica, ReplicaVector::grads), Each(0));
  EXPECT_EQ(watched.replica.evaluate(Batch{tiny_shape, {}, {}}).samples, 0U);
}

TEST(ReplicaPassesOnCpu, SayInOneLineWhatLibtorchRefuses) {
  Watched<Tiny> watched({});
  Batch batch = tiny_batch(1);
  batch.labels[3] = tiny_classes;
  EXPECT_EQ(refusal(watched.replica, batch),
            "backward pass over 8 samples of 1x6x6: Target 3 is out of bounds.");
}

TEST_P(ReplicaPasses, MayUseALossOfTheUser) {
  Watched<Tiny> watched({.mean_loss = [](const torch::Tensor& outputs,
                                         const torch::Tensor&) { return outputs.square().mean(); },
                         .device = device()});
  const Batch batch = tiny_batch(1);
  watched.replica.initialise(4);
  const PassResult result = watched.replica.backward(batch);
  const double expected =
      drawn<Tiny>(4)->forward(features_of(batch)).square().mean().item<double>();
  EXPECT_NEAR(result.loss_sum, 8 * expected, 8 * tolerance());
}

/// Weights 2, 0 and 1 give the gradient of a batch that has the samples 2, 0 and 1 times.
TEST_P(ReplicaPasses, WeighSamplesAsIfTheyCameSoOften) {
  Watched<Tiny> watched({.device = device()});
  watched.replica.initialise(4);
  watched.module->norm->eval();  // its batch statistics would depend on repeated samples
  Batch weighted = tiny_batch(1, 3);
  weighted.weights = {2, 0, 1};
  const PassResult result = watched.replica.backward(weighted);
  const auto gradient = values_of(watched.replica, ReplicaVector::grads);
  Batch repeated{tiny_shape, {}, {}};
  for (const std::size_t sample : {0U, 0U, 2U}) {
    const auto begin = weighted.features.begin() + sample * tiny_shape.values();
    repeated.features.insert(repeated.features.end(), begin, begin + tiny_shape.values());
    repeated.labels.push_back(weighted.labels[sample]);
  }
  const PassResult expected = watched.replica.backward(repeated);
  EXPECT_NEAR(result.loss_sum, expected.loss_sum, 3 * tolerance());
  EXPECT_EQ(result.samples, 3U);
  EXPECT_THAT(gradient,
              Pointwise(FloatNear(tolerance()), values_of(watched.replica, ReplicaVector::grads)));
  weighted.weights = {0, 0, 0};
  EXPECT_EQ(watched.replica.backward(weighted).loss_sum, 0);
  EXPECT_THAT(values_of(watched.replica, ReplicaVector::grads), Each(0));
}

/// At equal outputs the gradient of the bias is Σ w (softmax − target) / Σ w: with three classes
/// and weights 1 and 3 for the classes 0 and 2 it is (1/3 − 1/4, 1/3, 1/3 − 3/4).
TEST_P(ReplicaPasses, GiveTheGradientOfWeightedSamples) {
  struct Bias : torch::nn::Module {
    torch::Tensor bias = register_parameter("bias", torch::zeros({3}));
    torch::Tensor forward(const torch::Tensor& x) { return bias.expand({x.size(0), 3}); }
  };
  Watched<Bias> watched({.device = device()});
  Batch batch = tiny_batch(1, 2);
  batch.labels = {0, 2};
  batch.weights = {1, 3};
  const PassResult result = watched.replica.backward(batch);
  EXPECT_NEAR(result.loss_sum, 2 * std::log(3.0), tolerance());
  EXPECT_THAT(values_of(watched.replica, ReplicaVector::grads),
              testing::ElementsAre(FloatNear(1.0F / 3 - 0.25F, tolerance()),
                                   FloatNear(1.0F / 3, tolerance()),
                                   FloatNear(1.0F / 3 - 0.75F, tolerance())));
}

TEST(ReplicaPassesOnCpu, WeighSamplesOnlyInTheirOwnLoss) {
  Watched<Tiny> watched({.mean_loss = [](const torch::Tensor& outputs, const torch::Tensor&) {
    return outputs.mean();
  }});
  Batch batch = tiny_batch(1, 2);
  batch.weights = {1, 3};
  EXPECT_EQ(refusal(watched.replica, batch),
            "2 weights for 2 samples: expected one weight per sample, and the loss cross entropy");
}

TEST_P(ReplicaPasses, DrawParametersBySeedAlone) {
  Watched<Tiny> one({.device = device()});
  Watched<Tiny> other({.device = device()});
  one.replica.initialise(7);
  torch::randn({5});  // another draw in between must have no effect
  other.replica.initialise(7);
  EXPECT_EQ(values_of(one.replica, ReplicaVector::params),
            values_of(other.replica, ReplicaVector::params));
  EXPECT_EQ(values_of(one.replica, ReplicaVector::params), flattened(drawn<Tiny>(7)->parameters()));
  other.replica.initialise(8);
  EXPECT_NE(values_of(one.replica, ReplicaVector::params),
            values_of(other.replica, ReplicaVector::params));
}

TEST_P(ReplicaPasses, DrawParametersAndLeaveOthersDrawsAlone) {
  Watched<Tiny> watched({.device = device()});
  torch::manual_seed(3);
  watched.replica.initialise(9);
  const torch::Tensor after = torch::randn({5});
  torch::manual_seed(3);
  EXPECT_TRUE(torch::randn({5}).equal(after));
}

TEST_P(ReplicaPasses, ResetBuffersWithTheParameters) {
  Watched<Tiny> watched({.device = device()});
  const std::vector<float> fresh = values_of(watched.replica, ReplicaVector::buffers);
  watched.replica.backward(tiny_batch(1));
  EXPECT_NE(values_of(watched.replica, ReplicaVector::buffers), fresh);
  EXPECT_EQ(watched.module->norm->num_batches_tracked.item<std::int64_t>(), 1);
  watched.replica.initialise(1);
  EXPECT_EQ(values_of(watched.replica, ReplicaVector::buffers), fresh);
  EXPECT_EQ(watched.module->norm->num_batches_tracked.item<std::int64_t>(), 0);
}

TEST_P(ReplicaPasses, ChangeNothingInEvaluation) {
  Watched<Tiny> watched({.device = device()});
  watched.replica.backward(tiny_batch(1));
  watched.module->conv->eval();  // a part that the user holds in evaluation mode
  const auto params = values_of(watched.replica, ReplicaVector::params);
  const auto grads = values_of(watched.replica, ReplicaVector::grads);
  const auto buffers = values_of(watched.replica, ReplicaVector::buffers);
  watched.replica.evaluate(tiny_batch(2));
  EXPECT_EQ(values_of(watched.replica, ReplicaVector::params), params);
  EXPECT_EQ(values_of(watched.replica, ReplicaVector::grads), grads);
  EXPECT_EQ(values_of(watched.replica, ReplicaVector::buffers), buffers);
  EXPECT_EQ(watched.module->norm->num_batches_tracked.item<std::int64_t>(), 1);
  EXPECT_TRUE(watched.module->is_training());
  EXPECT_TRUE(watched.module->norm->is_training());
  EXPECT_FALSE(watched.module->conv->is_training());
}

TEST_P(ReplicaPasses, EvaluateWithRunningStatistics) {
  Watched<Tiny> watched({.device = device()});
  const Batch batch = tiny_batch(2);
  watched.replica.initialise(6);
  const PassResult result = watched.replica.evaluate(batch);
  const auto plain = drawn<Tiny>(6);
  plain->eval();
  const torch::Tensor labels = torch::tensor(batch.labels);
  const torch::Tensor outputs = plain->forward(features_of(batch));
  EXPECT_EQ(result.correct, outputs.argmax(1).eq(labels).sum().item<std::int64_t>());
  EXPECT_NEAR(result.loss_sum, 8 * torch::cross_entropy_loss(outputs, labels).item<double>(),
              8 * tolerance());
}

/// Returns images of noise in three classes; in each class another row is bright.
Batch rows_in_noise(std::uint64_t seed, std::uint32_t samples) {
  Batch batch = tiny_batch(seed, samples);
  for (std::size_t i = 0; i < samples; ++i) {
    for (std::size_t column = 0; column < tiny_shape.width; ++column) {
      batch.features[i * tiny_shape.values() +
                     static_cast<std::size_t>(batch.labels[i]) * tiny_shape.width + column] += 3;
    }
  }
  return batch;
}

TEST_P(ReplicaPasses, LearnRowsInNoise) {
  Watched<Tiny> watched({.device = device()});
  watched.replica.initialise(1);
  watched.replica.set_learning_rate(0.02);
  for (std::uint64_t step = 0; step < 100; ++step) {
    watched.replica.backward(rows_in_noise(step, 32));
    watched.replica.local_step();
  }
  EXPECT_GE(watched.replica.evaluate(rows_in_noise(1000, 500)).correct, 480U);
}

std::vector<std::string> devices() {
  std::vector<std::string> names{"cpu"};
  if (torch::cuda::is_available()) names.emplace_back("cuda");
  return names;
}

/// Returns the buffers of a plain module after a pass over `batches`, with the mean of their
/// statistics.
std::vector<float> statistics_of(Tiny& plain, const std::vector<Batch>& batches) {
  plain.norm->options.momentum(torch::nullopt);
  plain.norm->reset_running_stats();
  const torch::NoGradGuard no_grad;
  for (const Batch& batch : batches) plain.forward(features_of(batch));
  return flattened({plain.norm->running_mean, plain.norm->running_var});
}

TEST_P(ReplicaPasses, RecomputeStatisticsAsTheMeanOverBatches) {
  Watched<Tiny> watched({.device = device()});
  watched.replica.initialise(3);
  for (const std::uint64_t seed : {1, 2}) {
    watched.replica.backward(tiny_batch(seed));
    watched.replica.local_step();
  }
  const auto params = values_of(watched.replica, ReplicaVector::params);
  const auto optimizer = watched.replica.optimizer_state();
  const auto lagging = values_of(watched.replica, ReplicaVector::buffers);

  const std::vector<Batch> batches{tiny_batch(11), tiny_batch(12), tiny_batch(13)};
  std::size_t made = 0;
  watched.replica.recompute_statistics([&](Batch& into) {
    if (made == batches.size()) return false;
    into = batches[made++];
    return true;
  });
  const auto recomputed = values_of(watched.replica, ReplicaVector::buffers);
  EXPECT_THAT(recomputed, Pointwise(Ne(), lagging));
  EXPECT_EQ(values_of(watched.replica, ReplicaVector::params), params);
  EXPECT_EQ(watched.replica.optimizer_state().slots, optimizer.slots);

  auto plain = drawn<Tiny>(3);
  {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < plain->parameters().size(); ++i) {
      plain->parameters()[i].copy_(watched.module->parameters()[i]);
    }
  }
  EXPECT_THAT(recomputed, Pointwise(FloatNear(tolerance()), statistics_of(*plain, batches)));

  plain->eval();
  const Batch batch = tiny_batch(21);
  const torch::NoGradGuard no_grad;
  const double loss =
      torch::cross_entropy_loss(plain->forward(features_of(batch)), torch::tensor(batch.labels))
          .item<double>();
  EXPECT_NEAR(watched.replica.evaluate(batch).loss_sum, 8 * loss, 80 * tolerance());
  EXPECT_TRUE(watched.module->norm->is_training()) << "each part is in its own mode again";
  EXPECT_EQ(watched.module->norm->options.momentum(), 0.1);
  watched.replica.recompute_statistics([](Batch&) { return false; });
  EXPECT_EQ(values_of(watched.replica, ReplicaVector::buffers), recomputed);
}

TEST_P(ReplicaPasses, TellWhenTheForwardPassIsDone) {
  Watched<Tiny> watched({.device = device()});
  std::vector<std::vector<float>> gradients;  // no backward pass has written one yet
  watched.replica.on_forward_done(
      [&] { gradients.push_back(values_of(watched.replica, ReplicaVector::grads)); });
  watched.replica.backward(tiny_batch(1));
  const std::vector<float> first = values_of(watched.replica, ReplicaVector::grads);
  watched.replica.backward(tiny_batch(2));
  ASSERT_EQ(gradients.size(), 2U);
  EXPECT_THAT(gradients[0], testing::Each(0));
  EXPECT_EQ(gradients[1], first);
  watched.replica.evaluate(tiny_batch(3));
  EXPECT_EQ(gradients.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Devices, ReplicaPasses, testing::ValuesIn(devices()),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace syncopate::torch_backend
