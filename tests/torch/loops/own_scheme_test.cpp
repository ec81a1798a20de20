// Goal:   a scheme that a program registers trains the program's replica, in a job and in a single
//         process.
// Method: a scheme that averages gradients as `ssgd` does, in programs that are threads and in a
//         single one, is compared with `ssgd`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Pointwise;

/// Averages gradients by samples, g = sum(n_i g_i) / sum(n_i), and takes a step.
class MeanGradient final : public Scheme {
 public:
  void after_backward(SchemeStep& step) override {
    const Values gradients = step.gradients();
    std::vector<double> sums(gradients.begin(), gradients.end());
    sums.push_back(1);
    for (double& sum : sums) {
      sum *= step.samples();
    }
    step.workers().allreduce(sums);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      gradients[i] = static_cast<float>(sums[i] / sums.back());
    }
    step.take_step();
  }
};

class Failing final : public Scheme {
 public:
  void after_backward(SchemeStep& /*step*/) override {
    throw std::runtime_error("the scheme does not like this step");
  }
};

void register_schemes() {
  static const bool once = [] {
    register_scheme("mean-gradient", [] { return std::make_unique<MeanGradient>(); });
    register_scheme("failing", [] { return std::make_unique<Failing>(); });
    return true;
  }();
  static_cast<void>(once);
}

std::vector<std::vector<float>> trained(std::uint32_t programs, const std::string& scheme) {
  std::vector<std::vector<float>> parameters(programs);
  const auto errors = ThreadedPrograms(programs).run([&](const JobEntry& entry) {
    parameters[entry.rank] =
        train_by_loop({.entry = entry}, batch_size * programs, epochs, {scheme});
  });
  EXPECT_THAT(errors, Each(""));
  return parameters;
}

TEST(OwnSchemeTest, TrainsAsTheSameBuiltInOne) {
  register_schemes();
  const auto own = trained(3, "mean-gradient");
  EXPECT_EQ(own[0], own[1]);
  EXPECT_EQ(own[0], own[2]);
  EXPECT_THAT(own[0], Pointwise(testing::FloatNear(1e-5F), trained(3, "ssgd")[0]));
}

TEST(OwnSchemeTest, InAProcessByItself) {
  register_schemes();
  EXPECT_THAT(train_by_loop({}, batch_size, epochs, {"mean-gradient"}),
              Pointwise(testing::FloatNear(1e-5F), train_by_loop({}, batch_size, epochs)));
}

TEST(OwnSchemeTest, ItsErrorsLeaveTheStep) {
  register_schemes();
  EXPECT_THROW(train_by_loop({}, batch_size, epochs, {"failing"}), std::runtime_error);
}

/// The rules for built-in schemes also hold for a registered one.
TEST(OwnSchemeTest, AJobHasOneOptimizerAndABatchSize) {
  register_schemes();
  TorchJob job = init();
  Linear net;
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
  EXPECT_THAT(refusal([&] { DistributedOptimizer(job, net, sgd, {.scheme = "mean-gradient"}); }),
              HasSubstr("does not know how many samples a step has"));
  DistributedOptimizer first(job, net, sgd, {.scheme = "mean-gradient", .batch_size = 4});
  for (const char* const scheme : {"mean-gradient", "ssgd"}) {
    EXPECT_THAT(
        refusal([&] { DistributedOptimizer(job, net, sgd, {.scheme = scheme, .batch_size = 4}); }),
        HasSubstr("a job has one optimizer"));
  }
}

TEST(OwnSchemeTest, TrainsOnWhenTheProgramHasLetGoOfTheJob) {
  register_schemes();
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    std::optional<TorchJob> job(std::in_place, InitOptions{.entry = entry});
    Linear net;
    torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
    DistributedOptimizer optimizer(*job, net, sgd, {.scheme = "mean-gradient", .batch_size = 4});
    job.reset();
    const std::vector<float> before = values_of(net);
    net.forward(torch::ones({4, 6})).sum().backward();
    optimizer.step();
    optimizer.finish();
    EXPECT_NE(values_of(net), before);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(OwnSchemeTest, ANameIsGivenOnce) {
  register_schemes();
  EXPECT_THAT(refusal([] { register_scheme("failing", {}); }), HasSubstr("already"));
}

}  // namespace
}  // namespace syncopate::test
