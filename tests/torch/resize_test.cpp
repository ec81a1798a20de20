// Goal:   if a network needs another image size, the replica resizes images as libtorch's
//         interpolation does, in training and in evaluation.
// Method: a replica that resizes is compared with a replica of the same network that gets images
//         interpolated by the test.
#include "torch/resize.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/upsampling.h>

#include "base/errors.hpp"
#include "tests/support/refusal.hpp"
#include "tests/torch/examples.hpp"

namespace syncopate::torch_backend {
namespace {

TEST(Resize, GivesTheNetworkInterpolatedImages) {
  const NetworkSettings plain{.name = "mlp", .input = {2, 8, 6}, .classes = 3};
  NetworkSettings resized = plain;
  resized.resize = 12;
  NetworkSettings large = plain;
  large.input = {2, 12, 12};
  const auto of_resized = make_replica(resized, {.optimizer = Optimizer::sgd}, "cpu");
  const auto of_large = make_replica(large, {.optimizer = Optimizer::sgd}, "cpu");
  of_resized->initialise(1);
  of_large->initialise(1);

  const Batch batch = random_batch(1, plain.input, 4, 3);
  namespace F = torch::nn::functional;
  const torch::Tensor images =
      F::interpolate(features_of(batch), F::InterpolateFuncOptions()
                                             .size(std::vector<std::int64_t>{12, 12})
                                             .mode(torch::kBilinear)
                                             .align_corners(false));
  Batch interpolated = batch;
  interpolated.shape = large.input;
  interpolated.features = flattened({images});
  EXPECT_NEAR(of_resized->evaluate(batch).loss_sum, of_large->evaluate(interpolated).loss_sum,
              1e-5);
  of_resized->backward(batch);
  of_large->backward(interpolated);
  EXPECT_EQ(values_of(*of_resized, ReplicaVector::grads),
            values_of(*of_large, ReplicaVector::grads));
}

TEST(Resize, NeedsANetworkThatTakesImagesOfTheSize) {
  const auto check = [](std::uint32_t side) {
    return syncopate::refusal([&] {
      check_network({.name = "lenet5", .input = {1, 28, 28}, .classes = 10, .resize = side});
    });
  };
  EXPECT_EQ(check(12), "no ConfigError");
  EXPECT_THAT(check(11), testing::HasSubstr("lenet5 for images of 11x11: expected at least 12x12"));
}

}  // namespace
}  // namespace syncopate::torch_backend
