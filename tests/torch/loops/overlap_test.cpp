// Goal:   with option overlap = on, gradients of a module are sent during its backward pass, and
//         the training has the same bits as without overlap; calls that overlap forbids are
//         refused.
// Method: two programs, threads of this process, train a network of several buckets with and
//         without overlap; misuse in a process by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::HasSubstr;

/// A network of 4.3 MB with a layer that only some passes use.
struct Wide : torch::nn::Module {
  Wide() {
    torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : parameters()) {
      parameter.copy_(0.02 * torch::sin(torch::arange(parameter.numel())).view(parameter.sizes()));
    }
  }
  torch::Tensor forward(const torch::Tensor& x, bool detour) {
    const torch::Tensor hidden = middle(first(x).tanh()).tanh();
    return last(detour ? sometimes(hidden).tanh() : hidden);
  }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(6, 720))};
  torch::nn::Linear middle{register_module("middle", torch::nn::Linear(720, 720))};
  torch::nn::Linear sometimes{register_module("sometimes", torch::nn::Linear(720, 720))};
  torch::nn::Linear last{register_module("last", torch::nn::Linear(720, 3))};
};

/// Takes steps of 1 to 6 samples, every third one with two passes; returns the parameters.
std::vector<float> train(const JobEntry& entry, const std::string& overlap,
                         const std::string& folder) {
  TorchJob job({.options = {{"overlap", overlap}, {"run-dir", folder}}, .entry = entry});
  const int rank = static_cast<int>(job.rank());
  Wide network;
  torch::optim::SGD sgd(network.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  DistributedOptimizer optimizer(job, network, sgd, {.batch_size = 4});
  for (int step = 0; step < 6; ++step) {
    const auto pass = [&](int samples, int shift) {
      const torch::Tensor x = torch::cos(torch::arange(samples * 6) + 10 * step + 3 * rank + shift);
      const torch::Tensor y = torch::arange(samples, torch::kLong).remainder(3);
      const torch::Tensor outputs =
          network.forward(x.view({samples, 6}), /*detour=*/(step + rank) % 2 == 0);
      torch::nn::functional::cross_entropy(outputs, y).backward();
    };
    const int samples = 1 + (step + 2 * rank) % 6;
    optimizer.zero_grad();
    optimizer.expect(samples);
    if (step % 3 == 2) {
      const auto held = optimizer.no_sync();
      pass(samples, 100);
    }
    pass(samples, 0);
    optimizer.step(samples);
  }
  optimizer.finish();
  return values_of(network);
}

std::vector<std::vector<float>> train_two(const std::string& overlap) {
  const std::string folder = run_folder();
  ThreadedPrograms programs(2);
  std::vector<std::vector<float>> params(2);
  const std::vector<std::string> errors = programs.run(
      [&](const JobEntry& entry) { params[entry.rank] = train(entry, overlap, folder); });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  return params;
}

TEST(OverlapTest, HasTheBitsOfATrainingWithout) {
  const std::vector<std::vector<float>> on = train_two("on");
  EXPECT_EQ(on[0], on[1]);
  EXPECT_NE(on[0], values_of(Wide()));
  EXPECT_EQ(on, train_two("off"));
}

class OverlapMisuseTest : public testing::Test {
 protected:
  void pass() { network_.forward(torch::ones({2, 6})).sum().backward(); }

  TorchJob job_{{.options = {{"overlap", "on"}}}};
  Linear network_;
  torch::optim::SGD sgd_{network_.parameters(), torch::optim::SGDOptions(0.1)};
  DistributedOptimizer optimizer_{job_, network_, sgd_, {.batch_size = 2}};
};

TEST_F(OverlapMisuseTest, OfSamplesThatNobodyHasSaid) {
  EXPECT_THAT(refusal([&] { pass(); }), HasSubstr("call optimizer.expect(samples)"));
  optimizer_.expect(2);
  pass();
  EXPECT_THAT(refusal([&] { optimizer_.expect(3); }), HasSubstr("call expect before backward"));
  EXPECT_THAT(refusal([&] { optimizer_.step(3); }), HasSubstr("left with one of 2"));
}

TEST_F(OverlapMisuseTest, OfASecondPass) {
  optimizer_.expect(2);
  pass();
  EXPECT_THAT(refusal([&] { pass(); }), HasSubstr("while no_sync() holds"));
}

TEST_F(OverlapMisuseTest, OfGradientsOnTheirWay) {
  optimizer_.expect(2);
  pass();
  EXPECT_THAT(refusal([&] { optimizer_.zero_grad(); }),
              HasSubstr("zero_grad between a backward pass and its step"));
  const torch::NoGradGuard no_grad;
  network_.parameters().front().mutable_grad().mul_(0.5);
  EXPECT_THAT(refusal([&] { optimizer_.step(); }), HasSubstr("a gradient was changed between"));
}

TEST_F(OverlapMisuseTest, OfAGradientThatIsTakenAway) {
  optimizer_.expect(2);
  pass();
  network_.parameters().back().mutable_grad() = torch::Tensor();
  EXPECT_THAT(refusal([&] { optimizer_.step(2); }), HasSubstr("a gradient was changed between"));
}

TEST_F(OverlapMisuseTest, NotOfAPassAfterTheEnd) {
  optimizer_.finish();
  pass();
  EXPECT_NE(network_.parameters().front().grad().sum().item<double>(), 0);
}

}  // namespace
}  // namespace syncopate::test
