// Goal:   if a program replaces a tensor of the module or the optimizer after both were wrapped,
//         the next step is refused with the tensor's name; tensors that change in place keep
//         training.
// Method: jobs of a single process; one change each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::StartsWith;

struct Layers : torch::nn::Module {
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(6, 3))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(3))};
};

class ChangedModuleTest : public testing::Test {
 protected:
  void step() {
    optimizer_.zero_grad();
    net_.norm(net_.layer(torch::rand({4, 6}))).square().sum().backward();
    optimizer_.step();
  }
  std::string refusal_of_step() {
    return refusal([&] { step(); });
  }

  TorchJob job_ = init();
  Layers net_;
  torch::optim::SGD sgd_{net_.parameters(), torch::optim::SGDOptions(0.1)};
  DistributedOptimizer optimizer_{job_, net_, sgd_, {.batch_size = 4}};
};

TEST_F(ChangedModuleTest, LayerThatIsReplaced) {
  step();
  net_.layer = net_.replace_module("layer", torch::nn::Linear(6, 3));
  EXPECT_THAT(
      refusal_of_step(),
      StartsWith("layer.weight is no longer the tensor that the optimizer was made with: "));
}

TEST_F(ChangedModuleTest, ParameterAndBufferThatComeLater) {
  const std::string end =
      " was registered after the optimizer was made, and would stay out of the training";
  net_.register_buffer("mean", torch::zeros({3}));
  EXPECT_THAT(refusal_of_step(), StartsWith("mean" + end));
  net_.layer->register_parameter("scale", torch::ones({3}));
  EXPECT_THAT(refusal_of_step(), StartsWith("layer.scale" + end));
}

TEST_F(ChangedModuleTest, LayerThatIsTakenAway) {
  net_.unregister_module("layer");
  EXPECT_THAT(refusal_of_step(), StartsWith("layer.weight, which the optimizer was made with, is "
                                            "no longer in the module"));
}

TEST_F(ChangedModuleTest, ParameterThatIsFrozenOrUnfrozen) {
  net_.layer->bias.requires_grad_(false);
  EXPECT_THAT(refusal_of_step(), StartsWith("layer.bias was frozen after the optimizer was made: "
                                            "call requires_grad_ before DistributedOptimizer"));
  net_.layer->bias.requires_grad_(true);
  EXPECT_NO_THROW(step());

  TorchJob job = init();
  Layers half_frozen;
  half_frozen.layer->weight.requires_grad_(false);
  torch::optim::SGD sgd({half_frozen.layer->bias}, torch::optim::SGDOptions(0.1));
  DistributedOptimizer optimizer(job, half_frozen, sgd, {.batch_size = 4});
  optimizer.step();
  half_frozen.layer->weight.requires_grad_(true);
  EXPECT_THAT(refusal([&] { optimizer.step(); }), StartsWith("layer.weight was unfrozen"));
}

TEST_F(ChangedModuleTest, OptimizerThatGetsOrLosesParameters) {
  sgd_.add_param_group({{torch::ones({7}, torch::requires_grad())}});
  EXPECT_THAT(refusal_of_step(),
              StartsWith("the optimizer has got a parameter of 7 values that it was not wrapped "
                         "with: add all groups and parameters before DistributedOptimizer"));
  sgd_.param_groups().pop_back();
  EXPECT_NO_THROW(step());
  sgd_.param_groups().front().params().pop_back();
  EXPECT_THAT(refusal_of_step(), StartsWith("the optimizer has lost a parameter of 3 values"));
}

TEST_F(ChangedModuleTest, TensorThatMoves) {
  const std::string end = " is no longer the tensor that the optimizer was made with: move a";
  const torch::Tensor place = net_.layer->weight.data();
  net_.layer->weight.set_data(place.clone());
  EXPECT_THAT(refusal_of_step(), StartsWith("layer.weight" + end));
  net_.layer->weight.set_data(place);
  net_.norm->running_var.set_data(torch::ones({3}));
  EXPECT_THAT(refusal_of_step(), StartsWith("norm.running_var" + end));
}

TEST_F(ChangedModuleTest, ValuesThatChangeInPlace) {
  {
    const torch::NoGradGuard no_grad;
    net_.layer->weight.copy_(torch::ones({3, 6}));
    net_.norm->running_mean.fill_(2);
    net_.norm->num_batches_tracked.set_data(torch::tensor(7));
  }
  EXPECT_NO_THROW(step());
  EXPECT_EQ(net_.norm->num_batches_tracked.item<int>(), 8);
}

}  // namespace
}  // namespace syncopate::test
