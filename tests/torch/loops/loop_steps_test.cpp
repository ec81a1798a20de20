// Goal:   steps over unequal parts of a batch are a step over the whole; gradients that are not
//         finite do to a process by itself what they do to a job; many steps need no more memory.
// Method: programs that are threads, beside libtorch alone; the heap is measured on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <limits>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t batch = 10;

torch::Tensor images() {
  return torch::sin(torch::arange(batch * 6)).view({batch, 6});
}

torch::Tensor loss(Linear& net, std::int64_t first, std::int64_t count) {
  const torch::Tensor labels = torch::arange(batch) % 3;
  return torch::nn::functional::cross_entropy(net.forward(images().narrow(0, first, count)),
                                              labels.narrow(0, first, count));
}

/// The gradients of a whole batch, in the order of the parameters.
std::vector<float> gradients_of_batch() {
  Linear net;
  loss(net, 0, batch).backward();
  std::vector<float> values;
  for (const torch::Tensor& parameter : net.parameters()) {
    const torch::Tensor flat = parameter.grad().contiguous();
    values.insert(values.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }
  return values;
}

/// By SGD of rate 1 a step is the gradient.
TEST(LoopStepsTest, OfUnequalPartsAreThoseOfTheWholeBatch) {
  const std::vector<float> expected = gradients_of_batch();
  const std::vector<float> before = values_of(Linear());
  const std::string folder = run_folder();
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"run-dir", folder}}, .entry = entry});
    Linear net;
    torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(1));
    DistributedOptimizer optimizer(job, net, sgd, {.batch_size = 5});
    const std::int64_t own = entry.rank == 0 ? 7 : 3;
    loss(net, entry.rank == 0 ? 0 : 7, own).backward();
    optimizer.step(own);
    const std::vector<float> after = values_of(net);
    ASSERT_EQ(after.size(), expected.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_NEAR(before[i] - after[i], expected[i], 1e-6) << i;
    }
    optimizer.finish();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// A layer of bfloat16 that is not trained, before one that is.
struct Adapted : torch::nn::Module {
  Adapted() {
    base->to(torch::kBFloat16);
    for (torch::Tensor& parameter : base->parameters()) parameter.requires_grad_(false);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return head(base(x.to(torch::kBFloat16)).to(torch::kFloat32));
  }

  torch::nn::Linear base{register_module("base", torch::nn::Linear(6, 6))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(6, 3))};
};

TEST(LoopStepsTest, FrozenParametersAreThoseOfWorkerZeroAndStayOutOfTheExchange) {
  const std::string folder = run_folder();
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"run-dir", folder}}, .entry = entry});
    Adapted net;
    const auto set = [](const torch::Tensor& tensor, double value) { tensor.data().fill_(value); };
    set(net.base->weight, entry.rank == 0 ? 0.5 : 2);
    torch::optim::SGD sgd(net.head->parameters(), torch::optim::SGDOptions(0.1));
    DistributedOptimizer optimizer(job, net, sgd, {.batch_size = batch});
    EXPECT_TRUE(net.base->weight.eq(0.5).all().item<bool>());
    const double own = entry.rank;
    set(net.base->weight, own);
    net.forward(images()).square().sum().backward();
    optimizer.step();
    optimizer.finish();
    EXPECT_TRUE(net.base->weight.eq(own).all().item<bool>());
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Four steps, the second of which has a gradient that is not finite. Returns the parameters.
std::vector<float> train_with_nan(const InitOptions& options) {
  TorchJob job = init(options);
  Linear net;
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  DistributedOptimizer optimizer(job, net, sgd, {.batch_size = batch});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    const float factor = step == 1 ? std::numeric_limits<float>::quiet_NaN() : 1;
    (loss(net, 0, batch) * factor).backward();
    optimizer.step();
  }
  optimizer.finish();
  return values_of(net);
}

TEST(LoopStepsTest, GradientThatIsNotFinite) {
  const std::string message = "worker 0, step 2: the gradient of a batch is not finite";
  try {
    train_with_nan({});
    ADD_FAILURE() << "no NotFinite";
  } catch (const NotFinite& error) {
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
  const auto errors = ThreadedPrograms(1).run([](const JobEntry& entry) {
    train_with_nan({.options = {{"run-dir", run_folder()}}, .entry = entry});
  });
  EXPECT_THAT(errors.front(), HasSubstr(message));
}

TEST(LoopStepsTest, GradientThatIsNotFiniteAndSkipped) {
  const std::vector<float> alone = train_with_nan({.options = {{"on-nan", "skip"}}});
  const auto errors = ThreadedPrograms(1).run([&](const JobEntry& entry) {
    EXPECT_EQ(alone, train_with_nan({.options = {{"on-nan", "skip"}, {"run-dir", run_folder()}},
                                     .entry = entry}));
  });
  EXPECT_EQ(errors, std::vector<std::string>(1));
}

/// Bytes in use; 0 under a sanitizer, which has a heap of its own.
std::size_t heap() {
  return ::mallinfo2().uordblks;
}

TEST(LoopStepsTest, TenThousandNeedNoMoreMemory) {
  constexpr std::size_t most_growth = 512 * 1024;  // bytes, of both programs
  std::size_t before = 0;
  std::size_t after = 0;
  const std::string folder = run_folder();
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"run-dir", folder}}, .entry = entry});
    auto loader = job.partition_dataset(SmallImages().map(torch::data::transforms::Stack<>()),
                                        2 * batch_size);
    Linear net;
    torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    DistributedOptimizer optimizer(job, net, sgd);
    for (int step = 0; step < 10000;) {
      for (auto& images : *loader) {
        if (entry.rank == 0 && step == 2000) before = heap();
        optimizer.zero_grad();
        torch::nn::functional::cross_entropy(net.forward(images.data), images.target).backward();
        optimizer.step(images.target.size(0));
        ++step;
      }
    }
    if (entry.rank == 0) after = heap();
    optimizer.finish();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_LT(after, before + most_growth);
}

}  // namespace
}  // namespace syncopate::test
