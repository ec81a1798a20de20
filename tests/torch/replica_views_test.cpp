// Goal:   parameters, gradients and buffers stay views of the flat vectors in all operations of a
//         replica. Tied and frozen parameters have an offset, and misuse is refused with the name
//         of the tensor.
// Method: the test keeps a handle to the small module of a replica and compares addresses and
//         values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "tests/torch/examples.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names(const std::vector<TensorInfo>& layout) {
  std::vector<std::string> result;
  for (const TensorInfo& tensor : layout) result.push_back(tensor.name);
  return result;
}

void expect_views(Watched<Tiny>& watched) {
  const auto parameters = watched.module->named_parameters();
  for (const TensorInfo& info : watched.replica.layout(ReplicaVector::params)) {
    const torch::Tensor& parameter = parameters[info.name];
    EXPECT_EQ(parameter.sizes().vec(), info.shape);
    EXPECT_EQ(parameter.data_ptr(), &watched.replica.view(ReplicaVector::params)[info.offset])
        << info.name;
    EXPECT_EQ(parameter.grad().data_ptr(), &watched.replica.view(ReplicaVector::grads)[info.offset])
        << info.name;
  }
  const auto buffers = watched.module->named_buffers();
  for (const TensorInfo& info : watched.replica.layout(ReplicaVector::buffers)) {
    EXPECT_EQ(buffers[info.name].data_ptr(),
              &watched.replica.view(ReplicaVector::buffers)[info.offset])
        << info.name;
  }
}

TEST(ReplicaViews, AreLaidOutInTheModulesOrder) {
  Watched<Tiny> watched({});
  EXPECT_THAT(
      names(watched.replica.layout(ReplicaVector::params)),
      ElementsAre("conv.weight", "conv.bias", "norm.weight", "norm.bias", "fc.weight", "fc.bias"));
  EXPECT_THAT(names(watched.replica.layout(ReplicaVector::buffers)),
              ElementsAre("norm.running_mean", "norm.running_var"));
  const std::vector<TensorInfo> layout = watched.replica.layout(ReplicaVector::grads);
  EXPECT_EQ(layout[1].offset, 18U);
  EXPECT_THAT(layout[0].shape, ElementsAre(2, 1, 3, 3));
  EXPECT_EQ(watched.replica.view(ReplicaVector::params).size(), 18U + 2 + 2 + 2 + 96 + 3);
  EXPECT_EQ(watched.replica.view(ReplicaVector::grads).size(), 123U);
  EXPECT_EQ(watched.replica.view(ReplicaVector::buffers).size(), 4U);
}

TEST(ReplicaViews, StayThroughEveryCall) {
  for (const auto grain : {ModuleReplica::Grain::pieces, ModuleReplica::Grain::tensors}) {
    Watched<Tiny> watched({.grain = grain});
    expect_views(watched);
    watched.replica.initialise(1);
    expect_views(watched);
    for (int step = 0; step < 3; ++step) {
      watched.replica.backward(tiny_batch(2));
      watched.replica.local_step();
    }
    watched.replica.evaluate(tiny_batch(3));
    watched.replica.load_optimizer_state(watched.replica.optimizer_state());
    watched.replica.backward(Batch{tiny_shape, {}, {}});
    expect_views(watched);
  }
}

TEST(ReplicaViews, ShowTheModuleWhatIsWrittenIntoThem) {
  Watched<Tiny> watched({});
  watched.replica.view(ReplicaVector::params)[18] = 42;
  watched.replica.store(ReplicaVector::params);
  EXPECT_EQ(watched.module->conv->bias[0].item<float>(), 42);
}

/// Two linear layers that share one weight.
struct Tied : torch::nn::Module {
  Tied()
      : first(register_module("first", torch::nn::Linear(36, 36))),
        second(register_module("second", first)),
        head(register_module("head", torch::nn::Linear(36, tiny_classes))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    return head(second(torch::relu(first(x.flatten(1)))));
  }

  torch::nn::Linear first, second, head;
};

TEST(ReplicaViews, HoldTiedParametersOnce) {
  Watched<Tied> watched({});
  EXPECT_THAT(names(watched.replica.layout(ReplicaVector::params)),
              ElementsAre("first.weight", "first.bias", "head.weight", "head.bias"));
  EXPECT_EQ(watched.module->second->weight.data_ptr(),
            watched.replica.view(ReplicaVector::params).data());

  const Batch batch = tiny_batch(1);
  watched.replica.initialise(5);
  watched.replica.backward(batch);
  const auto plain = drawn<Tied>(5);
  torch::cross_entropy_loss(plain->forward(features_of(batch)), torch::tensor(batch.labels))
      .backward();
  const std::vector<float> expected =
      flattened({plain->first->weight.grad(), plain->first->bias.grad(), plain->head->weight.grad(),
                 plain->head->bias.grad()});
  EXPECT_THAT(values_of(watched.replica, ReplicaVector::grads),
              testing::Pointwise(testing::FloatNear(1e-6F), expected));
}

/// A frozen feature extractor before a trained layer.
struct Frozen : torch::nn::Module {
  Frozen()
      : body(register_module("body", torch::nn::Linear(36, 4))),
        head(register_module("head", torch::nn::Linear(4, tiny_classes))) {
    for (torch::Tensor& parameter : body->parameters()) parameter.set_requires_grad(false);
  }

  torch::Tensor forward(const torch::Tensor& x) { return head(body(x.flatten(1))); }

  torch::nn::Linear body, head;
};

TEST(ReplicaViews, CountFrozenParametersAmongTheBuffers) {
  Watched<Frozen> watched({});
  EXPECT_THAT(names(watched.replica.layout(ReplicaVector::params)),
              ElementsAre("head.weight", "head.bias"));
  EXPECT_THAT(names(watched.replica.layout(ReplicaVector::buffers)),
              ElementsAre("body.weight", "body.bias"));
  const std::vector<float> before = values_of(watched.replica, ReplicaVector::buffers);
  watched.replica.backward(tiny_batch(1));
  watched.replica.local_step();
  EXPECT_EQ(values_of(watched.replica, ReplicaVector::buffers), before);
}

struct OfDoubles : torch::nn::Module {
  OfDoubles() : fc(register_module("fc", torch::nn::Linear(36, tiny_classes))) {
    to(torch::kFloat64);
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc(x.flatten(1)); }
  torch::nn::Linear fc;
};

struct Untrainable : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return x; }
};

template <class Module>
std::string refusal() {
  try {
    Watched<Module> watched({});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(ReplicaViews, RefuseWhatTheyCannotHold) {
  EXPECT_EQ(refusal<OfDoubles>(),
            "tensor fc.weight of the network is of type Double: a replica holds float32");
  EXPECT_EQ(refusal<Untrainable>(), "the network has no parameter to train");
}

/// Removes a gradient in the middle of a step.
struct Forgetful : Tiny {
  torch::Tensor forward(const torch::Tensor& x) {
    fc->bias.mutable_grad().reset();
    return Tiny::forward(x);
  }
};

TEST(ReplicaViews, NameTheGradientThatLeftThem) {
  Watched<Forgetful> watched({});
  try {
    watched.replica.backward(tiny_batch(1));
    FAIL() << "the gradient of fc.bias is elsewhere";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the gradient of fc.bias is no longer a view"));
  }
}

TEST(ReplicaViews, RefuseABatchThatContradictsItself) {
  Watched<Tiny> watched({});
  Batch batch = tiny_batch(1);
  batch.features.pop_back();
  EXPECT_THROW(watched.replica.backward(batch), InternalError);
}

}  // namespace
}  // namespace syncopate::torch_backend
