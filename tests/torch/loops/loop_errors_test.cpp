// Goal:   a program whose loop does something unusual works, or gets an error that says what to do;
//         an error of one program reaches the others.
// Method: jobs of a single process; two programs as threads if one has to notice the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

struct LoneProgram {
  explicit LoneProgram(const InitOptions& options = {}) : job(init(options)) {}

  void backward() {
    torch::nn::functional::cross_entropy(net.forward(torch::ones({4, 6})),
                                         torch::zeros({4}, torch::kInt64))
        .backward();
  }

  TorchJob job;
  Linear net;
  torch::optim::SGD sgd{net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
};

TEST(LoopErrorsTest, OptimizerWrappedTwice) {
  LoneProgram wrapped, plain;
  DistributedOptimizer first(wrapped.job, wrapped.net, wrapped.sgd, {.batch_size = 4});
  DistributedOptimizer undisturbed(plain.job, plain.net, plain.sgd, {.batch_size = 4});
  const auto step = [](LoneProgram& setup, DistributedOptimizer& optimizer) {
    optimizer.zero_grad();
    setup.backward();
    optimizer.step();
  };
  for (int i = 0; i < 3; ++i) {
    step(wrapped, first);
    step(plain, undisturbed);
    EXPECT_THAT(refusal([&] {
                  DistributedOptimizer(wrapped.job, wrapped.net, wrapped.sgd, {.batch_size = 4});
                }),
                HasSubstr("a job has one optimizer. Put all networks into one module"));
  }
  EXPECT_EQ(values_of(wrapped.net), values_of(plain.net));
}

TEST(LoopErrorsTest, ParameterWithoutGradientMakesNoStep) {
  LoneProgram setup;
  DistributedOptimizer optimizer(setup.job, setup.net, setup.sgd, {.batch_size = 4});
  const std::vector<float> before = values_of(setup.net);
  for (torch::Tensor& parameter : setup.net.parameters()) {
    parameter.mutable_grad().reset();
  }
  optimizer.step();
  EXPECT_EQ(values_of(setup.net), before);
}

/// zero_grad of libtorch 2 removes gradients, while libtorch 1 sets them to zero. `backward` then
/// makes new ones.
TEST(LoopErrorsTest, GradientsThatTheProgramReplaces) {
  LoneProgram wrapped, plain;
  DistributedOptimizer optimizer(wrapped.job, wrapped.net, wrapped.sgd, {.batch_size = 4});
  for (int step = 0; step < 3; ++step) {
    for (LoneProgram* const setup : {&wrapped, &plain}) {
      for (torch::Tensor& parameter : setup->net.parameters()) {
        parameter.mutable_grad().reset();
      }
      setup->backward();
    }
    optimizer.step();
    plain.sgd.step();
    EXPECT_EQ(values_of(wrapped.net), values_of(plain.net));
  }
}

/// zero_grad of libtorch 1 refuses views that autograd tracks.
TEST(LoopErrorsTest, GradientsThatTheProgramsOptimizerZeroes) {
  LoneProgram wrapped, plain;
  DistributedOptimizer optimizer(wrapped.job, wrapped.net, wrapped.sgd, {.batch_size = 4});
  for (int step = 0; step < 3; ++step) {
    for (LoneProgram* const setup : {&wrapped, &plain}) {
      setup->sgd.zero_grad();
      setup->backward();
    }
    optimizer.step();
    plain.sgd.step();
    EXPECT_EQ(values_of(wrapped.net), values_of(plain.net));
  }
}

TEST(LoopErrorsTest, RateThatTheProgramChanges) {
  LoneProgram wrapped, plain;
  DistributedOptimizer optimizer(wrapped.job, wrapped.net, wrapped.sgd, {.batch_size = 4});
  for (const double rate : {0.1, 0.01}) {
    for (LoneProgram* const setup : {&wrapped, &plain}) {
      setup->sgd.param_groups().front().options().set_lr(rate);
    }
    optimizer.zero_grad();
    plain.net.zero_grad();
    wrapped.backward();
    plain.backward();
    optimizer.step();
    plain.sgd.step();
  }
  EXPECT_EQ(values_of(wrapped.net), values_of(plain.net));
}

TEST(LoopErrorsTest, StepAfterTheEnd) {
  LoneProgram setup;
  DistributedOptimizer optimizer(setup.job, setup.net, setup.sgd, {.batch_size = 4});
  optimizer.finish();
  EXPECT_THAT(refusal([&] { optimizer.step(); }), HasSubstr("takes no further step"));
}

TEST(LoopErrorsTest, OptimizersThatDoNotFit) {
  LoneProgram setup;
  Linear other;
  torch::optim::SGD of_other(other.parameters(), torch::optim::SGDOptions(0.1));
  EXPECT_THAT(
      refusal([&] { DistributedOptimizer(setup.job, setup.net, of_other, {.batch_size = 4}); }),
      HasSubstr("none of the module's trained parameters"));
  torch::optim::LBFGS lbfgs(setup.net.parameters(), torch::optim::LBFGSOptions(1));
  EXPECT_THAT(
      refusal([&] { DistributedOptimizer(setup.job, setup.net, lbfgs, {.batch_size = 4}); }),
      HasSubstr("choose another optimizer"));
}

TEST(LoopErrorsTest, OptimizerWithoutGroups) {
  LoneProgram setup;
  torch::optim::SGD none(std::vector<torch::optim::OptimizerParamGroup>(),
                         torch::optim::SGDOptions(0.1));
  EXPECT_THAT(refusal([&] { DistributedOptimizer(setup.job, setup.net, none, {.batch_size = 4}); }),
              HasSubstr("the optimizer has no group of parameters"));
}

struct FailingSGD : torch::optim::SGD {
  using SGD::SGD;
  torch::Tensor step(LossClosure /*closure*/) override { throw std::runtime_error("no step"); }
};

TEST(LoopErrorsTest, StepThatFailsLeavesTheRates) {
  Linear net;
  FailingSGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
  ModuleReplica replica(net, sgd);
  EXPECT_THROW(replica.take_step(0.5), std::runtime_error);
  EXPECT_EQ(replica.learning_rates(), std::vector<double>{0.1});
}

TEST(LoopErrorsTest, RuleThatIsNone) {
  for (const std::string name : {"workers", "colour"}) {
    LoneProgram setup;
    EXPECT_EQ(refusal([&] {
                Training(setup.job, std::make_unique<ModuleReplica>(setup.net, setup.sgd),
                         {.optimizer = {.learning_rate = 0.1, .options = {{name, "3"}}},
                          .batch_size = 4});
              }),
              "the rule of an optimizer has no option " + name +
                  ": expected optimizer, momentum, weight-decay, beta1, beta2, epsilon, alpha");
  }
}

TEST(LoopErrorsTest, UnknownBatchSize) {
  LoneProgram setup;
  EXPECT_THAT(refusal([&] { DistributedOptimizer(setup.job, setup.net, setup.sgd); }),
              HasSubstr("call partition_dataset before"));
}

TEST(LoopErrorsTest, SizesThatAreTooLarge) {
  TorchJob job = init();
  const std::size_t much = (1ULL << 33) + 1;
  EXPECT_THAT(refusal([&] { job.share(64, much); }),
              StartsWith("a worker takes at most 4294967295 samples in a step, found a batch of "
                         "8589934593 for 1"));
  EXPECT_THAT(refusal([&] { job.share(much, 64); }),
              StartsWith("a dataset has at most 4294967295 samples, found 8589934593"));
  EXPECT_EQ(job.share(64, 16).step_size(), 16U);
}

TEST(LoopErrorsTest, EntryThatContradictsItself) {
  const JobEntry nobody{.coordinator = "127.0.0.1:1", .key = "key", .rank = 0, .size = 0};
  EXPECT_THAT(refusal([&] { init({.entry = nobody}); }),
              StartsWith("the entry calls this process worker 0 of 0"));
  const JobEntry third{.coordinator = "127.0.0.1:1", .key = "key", .rank = 2, .size = 2};
  EXPECT_THAT(refusal([&] { init({.entry = third}); }),
              StartsWith("the entry calls this process worker 2 of 2"));
}

TEST(LoopErrorsTest, OptionsThatDoNotExistOrContradict) {
  EXPECT_THAT(refusal([] { init({.scheme = "esink"}); }), HasSubstr("esync"));
  EXPECT_THAT(refusal([] {
                init({.options = {{"epochs", "2"}}});
              }),
              HasSubstr("a program with a loop of its own decides"));
  LoneProgram setup({.scheme = "esync"});
  EXPECT_THAT(refusal([&] {
                DistributedOptimizer(setup.job, setup.net, setup.sgd,
                                     {.scheme = "ssgd", .batch_size = 4});
              }),
              HasSubstr("--scheme is ssgd in the optimizer, but esync in init"));
}

std::vector<std::string> errors_of_two(const ThreadedPrograms::Program& program) {
  return ThreadedPrograms(2).run(program);
}

TEST(LoopErrorsTest, ProgramsThatTrainDifferentThings) {
  const std::string folder = run_folder();
  EXPECT_THAT(errors_of_two([&](const JobEntry& entry) {
                LoneProgram setup({.options = {{"run-dir", folder}}, .entry = entry});
                DistributedOptimizer(setup.job, setup.net, setup.sgd,
                                     {.batch_size = 4 + entry.rank});
              }),
              Each(AllOf(HasSubstr("batch-size is 5 in the program of worker 1, but 4 in that of "
                                   "worker 0"))));
}

/// Returns two parameter groups, one with the weight and one with the bias.
std::vector<torch::optim::OptimizerParamGroup> two_groups_of(Linear& net) {
  return {torch::optim::OptimizerParamGroup({net.layer->weight}),
          torch::optim::OptimizerParamGroup({net.layer->bias})};
}

/// A server steps all trained parameters of the module, at one learning rate.
TEST(LoopErrorsTest, ParametersAndRatesThatAServerDoesNotKnow) {
  const std::string folder = run_folder();
  const auto errors = errors_of_two([&](const JobEntry& entry) {
    LoneProgram setup({.scheme = "asgd", .options = {{"run-dir", folder}}, .entry = entry});
    torch::optim::SGD of_weight({setup.net.layer->weight}, torch::optim::SGDOptions(0.1));
    EXPECT_THAT(
        refusal([&] { DistributedOptimizer(setup.job, setup.net, of_weight, {.batch_size = 4}); }),
        HasSubstr("it steps the whole module, and layer.bias is in no group"));
    torch::optim::SGD sgd(two_groups_of(setup.net), torch::optim::SGDOptions(0.1));
    DistributedOptimizer optimizer(setup.job, setup.net, sgd, {.batch_size = 4});
    optimizer.step();
    sgd.param_groups()[1].options().set_lr(0);
    EXPECT_THAT(refusal([&] { optimizer.step(); }), HasSubstr("at the rate of the beginning"));
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// The other program gets the error in its own loop.
TEST(LoopErrorsTest, ProgramThatLeavesItsLoopByAnException) {
  const std::string folder = run_folder();
  const auto errors = errors_of_two([&](const JobEntry& entry) {
    LoneProgram setup({.options = {{"run-dir", folder}}, .entry = entry});
    DistributedOptimizer optimizer(setup.job, setup.net, setup.sgd, {.batch_size = 4});
    for (int step = 0; step < 100; ++step) {
      if (entry.rank == 1 && step == 3) {
        throw std::runtime_error("out of paper");
      }
      optimizer.zero_grad();
      setup.backward();
      optimizer.step();
    }
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("worker 1"), HasSubstr("left its loop by an exception")));
  EXPECT_EQ(errors[1], "out of paper");
}

/// Runs two workers that take these numbers of steps; returns their final parameters.
std::vector<std::vector<float>> after_loops_of(const Options& options,
                                               std::array<std::uint32_t, 2> steps) {
  const std::string folder = run_folder();
  std::vector<std::vector<float>> params(2);
  const auto errors = errors_of_two([&](const JobEntry& entry) {
    Options own = options;
    own["run-dir"] = folder;
    LoneProgram setup({.options = own, .entry = entry});
    {
      DistributedOptimizer optimizer(setup.job, setup.net, setup.sgd, {.batch_size = 4});
      for (std::uint32_t step = 0; step < steps[entry.rank]; ++step) {
        optimizer.zero_grad();
        setup.backward();
        optimizer.step();
      }
    }
    params[entry.rank] = values_of(setup.net);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  return params;
}

/// A program that has left its loop waits for the others, and all end with the model of the job.
TEST(LoopErrorsTest, LoopsOfUnequalLength) {
  std::vector<Options> jobs{{{"scheme", "nbssgd"}, {"commit", "racy"}},
                            {{"scheme", "nbssgd"}, {"commit", "racy"}, {"aggregate", "server"}},
                            {{"scheme", "asgd"}, {"servers", "2"}}};
  for (const std::string& scheme : distributed_schemes()) {
    jobs.push_back({{"scheme", scheme}});
  }
  const std::vector<float> first = values_of(Linear());
  for (const Options& options : jobs) {
    for (const std::array<std::uint32_t, 2> steps : {std::array{3U, 7U}, {7U, 3U}, {0U, 4U}}) {
      SCOPED_TRACE(options.at("scheme") + " of " + std::to_string(steps[0]) + " and " +
                   std::to_string(steps[1]));
      const auto params = after_loops_of(options, steps);
      ASSERT_EQ(params[0].size(), params[1].size());
      for (std::size_t i = 0; i < params[0].size(); ++i) {
        EXPECT_NEAR(params[0][i], params[1][i], 1e-6);
      }
      EXPECT_NE(params[0], first);
    }
  }
}

struct Normed : torch::nn::Module {
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(6))};
};

/// The last round has no samples and must not change running statistics. They are those of 20 steps
/// on each worker; with overlap they are a mean over unequal numbers of steps.
TEST(LoopErrorsTest, BuffersAtTheEnd) {
  const auto of_steps = [](int steps) { return 1 - std::pow(0.9, steps); };
  const std::map<std::string, int> most_steps{{"ssgd", 20},     {"local-sgd", 20}, {"esync", 1000},
                                              {"nbssgd", 1000}, {"asgd", 20},      {"downpour", 20},
                                              {"easgd", 20},    {"hogwild", 20}};
  for (const auto& known : most_steps) {
    const std::string& scheme = known.first;  // clang 14 captures no structured binding
    const int most = known.second;
    SCOPED_TRACE(scheme);
    const std::string folder = run_folder();
    const auto errors = errors_of_two([&](const JobEntry& entry) {
      TorchJob job = init({.scheme = scheme, .options = {{"run-dir", folder}}, .entry = entry});
      Normed net;
      torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
      {
        DistributedOptimizer optimizer(job, net, sgd, {.batch_size = 4});
        for (int step = 0; step < 20; ++step) {
          optimizer.zero_grad();
          net.norm->forward(torch::ones({4, 6})).sum().backward();
          optimizer.step();
        }
      }
      for (std::int64_t i = 0; i < 6; ++i) {
        const double value = net.norm->running_mean[i].item<double>();
        EXPECT_GT(value, of_steps(most == 20 ? 20 : 10) - 1e-4) << scheme;
        EXPECT_LT(value, of_steps(most) + 1e-4) << scheme;
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
  }
}

TEST(LoopErrorsTest, TrainingWithAProgramThatHasLeft) {
  std::promise<void> left;
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    {
      TorchJob job = init({.entry = entry});
      if (entry.rank == 0) {
        left.get_future().wait();
        Linear net;
        torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
        DistributedOptimizer(job, net, sgd, {.batch_size = 4});
      }
    }
    left.set_value();
  });
  EXPECT_THAT(errors[0], HasSubstr("has ended before training began"));
  EXPECT_EQ(errors[1], "");
}

}  // namespace
}  // namespace syncopate::test
