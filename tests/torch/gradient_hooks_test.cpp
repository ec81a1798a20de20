// Goal:   a backward pass reports each value of the gradient once, when it is final, in any graph:
//         the last layers first, a shared parameter after all its uses, an unused parameter at the
//         end. The results of the pass do not change.
// Method: small modules; a sink copies values when they are reported, and the test compares them
//         with the gradient at the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <limits>

#include "base/errors.hpp"
#include "tests/torch/examples.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Copies each value when it is reported.
class Taker final : public GradientSink {
 public:
  explicit Taker(Replica& replica)
      : gradient_(replica.view(ReplicaVector::grads)),
        taken(gradient_.size(), std::numeric_limits<float>::quiet_NaN()),
        times(gradient_.size(), 0) {}

  void ready(std::size_t begin, std::size_t end) override {
    order.push_back(begin);
    for (std::size_t i = begin; i < end; ++i) {
      taken[i] = gradient_[i];
      ++times[i];
    }
  }

 private:
  std::span<const float> gradient_;

 public:
  std::vector<float> taken;
  std::vector<int> times;
  std::vector<std::size_t> order;  ///< the first index of each report
};

/// Expects a pass over `batch` to report every value once, with its value at the end.
std::vector<std::size_t> expect_all_reported(Replica& replica, const Batch& batch) {
  Taker taker(replica);
  replica.backward(batch, &taker);
  EXPECT_THAT(taker.times, testing::Each(1));
  EXPECT_EQ(taker.taken, values_of(replica, ReplicaVector::grads));
  return taker.order;
}

TEST(GradientHooks, ReportLastLayersFirst) {
  Watched<Tiny> watched({});
  const auto offsets = watched.replica.layout(ReplicaVector::grads);
  const std::vector<std::size_t> order = expect_all_reported(watched.replica, tiny_batch(1));
  ASSERT_EQ(order.size(), 6U);
  EXPECT_GE(std::min(order[0], order[1]), offsets[4].offset);  // fc
  EXPECT_LT(std::max(order[4], order[5]), offsets[2].offset);  // conv
}

TEST(GradientHooks, LeaveThePassUnchanged) {
  Watched<Tiny> watched({});
  Watched<Tiny> plain({});
  watched.replica.initialise(3);
  plain.replica.initialise(3);
  Taker taker(watched.replica);
  const PassResult reported = watched.replica.backward(tiny_batch(1), &taker);
  const PassResult unreported = plain.replica.backward(tiny_batch(1));
  EXPECT_EQ(reported.loss_sum, unreported.loss_sum);
  EXPECT_EQ(taker.taken, values_of(plain.replica, ReplicaVector::grads));
  EXPECT_EQ(values_of(watched.replica, ReplicaVector::buffers),
            values_of(plain.replica, ReplicaVector::buffers));
}

TEST(GradientHooks, ReportZerosForNoSample) {
  Watched<Tiny> watched({});
  watched.replica.backward(tiny_batch(1));
  expect_all_reported(watched.replica, Batch{tiny_shape, {}, {}});
}

/// A network that uses one layer before and after another one.
struct Shared : torch::nn::Module {
  Shared()
      : outer(register_module("outer", torch::nn::Linear(36, 36))),
        inner(register_module("inner", torch::nn::Linear(36, 36))),
        head(register_module("head", torch::nn::Linear(36, tiny_classes))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    return head(outer(torch::relu(inner(torch::relu(outer(x.flatten(1)))))));
  }

  torch::nn::Linear outer, inner, head;
};

TEST(GradientHooks, ReportASharedParameterAfterAllItsUses) {
  Watched<Shared> watched({});
  const std::vector<std::size_t> order = expect_all_reported(watched.replica, tiny_batch(1));
  EXPECT_LT(order.back(),
            watched.replica.layout(ReplicaVector::grads)[2].offset);  // outer, after inner
}

/// A network that uses its middle layer only in every other pass.
struct Skipping : torch::nn::Module {
  Skipping()
      : first(register_module("first", torch::nn::Linear(36, 36))),
        middle(register_module("middle", torch::nn::Linear(36, 36))),
        head(register_module("head", torch::nn::Linear(36, tiny_classes))),
        unused(register_module("unused", torch::nn::Linear(2, 2))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor hidden = torch::relu(first(x.flatten(1)));
    return head(passes++ % 2 == 0 ? middle(hidden) : hidden);
  }

  int passes = 0;
  torch::nn::Linear first, middle, head, unused;
};

TEST(GradientHooks, FollowAGraphThatChanges) {
  Watched<Skipping> watched({.make_optimizer = with_optimizer({.optimizer = Optimizer::sgd})});
  const auto layout = watched.replica.layout(ReplicaVector::grads);
  for (int pass = 0; pass < 6; ++pass) {
    SCOPED_TRACE(pass);
    const std::vector<std::size_t> order =
        expect_all_reported(watched.replica, tiny_batch(static_cast<std::uint64_t>(pass)));
    ASSERT_EQ(order.size(), 8U);
    EXPECT_EQ(order.back(), pass % 2 == 0 ? layout[6].offset : layout[2].offset);
    const std::vector<float> gradient = values_of(watched.replica, ReplicaVector::grads);
    EXPECT_EQ(gradient[layout[6].offset], 0);
    const auto middle = std::span(gradient).subspan(layout[2].offset, 36 * 36);
    EXPECT_EQ(std::ranges::count(middle, 0) == 36 * 36, pass % 2 == 1);
  }
}

/// A network with a hook that runs another backward pass in the middle of the first one.
struct Nested : Tiny {
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor features = torch::relu(norm(conv(x))).flatten(1);
    if (is_training()) {
      features.register_hook([this](const torch::Tensor& grad) {
        const torch::AutoGradMode enabled(true);
        fc->weight.sum().backward();
        return grad;
      });
    }
    return fc(features);
  }
};

/// The inner pass adds a gradient of one to each value of fc.weight.
TEST(GradientHooks, KeepWhatPassesOfTheNetworkAdd) {
  Watched<Nested> nested({});
  Watched<Tiny> plain({});
  nested.replica.initialise(3);
  plain.replica.initialise(3);
  const auto layout = plain.replica.layout(ReplicaVector::grads);
  for (int pass = 0; pass < 3; ++pass) {
    nested.replica.backward(tiny_batch(1));
    plain.replica.backward(tiny_batch(1));
    std::vector<float> expected = values_of(plain.replica, ReplicaVector::grads);
    for (std::size_t i = layout[4].offset; i < layout[5].offset; ++i)
      expected[i] += 1;  // fc.weight
    const std::vector<float> gradient = values_of(nested.replica, ReplicaVector::grads);
    ASSERT_EQ(gradient.size(), expected.size());
    for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(gradient[i], expected[i], 1e-6);
  }
}

/// A network with a table whose sparse gradient has only the used rows.
struct Unusual : torch::nn::Module {
  Unusual()
      : table(register_module(
            "table", torch::nn::Embedding(torch::nn::EmbeddingOptions(3, 36).sparse(true)))),
        head(register_module("head", torch::nn::Linear(36, tiny_classes))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor row = table(torch::full({x.size(0)}, passes++ % 3, torch::kInt64));
    return head(x.flatten(1) + row);
  }

  int passes = 0;
  torch::nn::Embedding table;
  torch::nn::Linear head;
};

TEST(GradientHooks, WriteSparseGradientsAndThoseThatHooksChange) {
  Watched<Unusual> watched({});
  Watched<Unusual> doubled({});
  watched.replica.initialise(3);
  doubled.replica.initialise(3);
  doubled.module->head->weight.register_hook([](const torch::Tensor& grad) { return 2 * grad; });
  const auto layout = watched.replica.layout(ReplicaVector::grads);
  for (std::size_t pass = 0; pass < 3; ++pass) {
    watched.replica.backward(tiny_batch(1));
    doubled.replica.backward(tiny_batch(1));
    const std::vector<float> once = values_of(watched.replica, ReplicaVector::grads);
    const std::vector<float> twice = values_of(doubled.replica, ReplicaVector::grads);
    for (std::size_t row = 0; row < 3; ++row) {
      EXPECT_EQ(once[layout[0].offset + 36 * row] != 0, row == pass);
    }
    for (std::size_t i = layout[1].offset; i < layout[2].offset; ++i) {
      EXPECT_FLOAT_EQ(twice[i], 2 * once[i]);
    }
  }
}

TEST(GradientHooks, NameAGradientThatChangedAfterItWasComplete) {
  Watched<Nested> watched({});
  watched.replica.backward(tiny_batch(1));  // without a sink there is no error
  Taker taker(watched.replica);
  try {
    watched.replica.backward(tiny_batch(1), &taker);
    FAIL() << "the gradient of fc.weight was reported twice";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the gradient of fc.weight changed after it was complete"));
    EXPECT_THAT(error.what(), HasSubstr("--overlap off"));
  }
  watched.replica.backward(tiny_batch(1));  // the replica no longer uses the sink
}

TEST(GradientHooks, OutliveNoPass) {
  torch::Tensor loss;
  std::shared_ptr<Tiny> module;
  {
    Watched<Tiny> watched({});
    module = watched.module;
    loss = module->forward(features_of(tiny_batch(1))).sum();
  }
  loss.backward();  // the replica whose hooks were called no longer exists
  EXPECT_TRUE(module->fc->bias.grad().defined());
}

}  // namespace
}  // namespace syncopate::torch_backend
