// Goal:   a server applies the rule of the program's optimizer; for an optimizer without a rule
//         only its momentum counts; a rule that changes during the training is refused if a server
//         takes the steps.
// Method: optimizers of libtorch with chosen options; jobs of two programs that change their
//         options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::HasSubstr;
using torch::optim::AdamOptions;
using torch::optim::SGDOptions;

std::vector<torch::Tensor> parameters() {
  return {torch::ones({2}, torch::requires_grad())};
}

template <class GroupOptions>
torch::optim::OptimizerParamGroup group(const GroupOptions& options) {
  return {parameters(), std::make_unique<GroupOptions>(options)};
}

TEST(OptimizerRuleTest, OfOneGroup) {
  const torch::optim::SGD sgd(parameters(), SGDOptions(0.25).momentum(0.5).weight_decay(0.125));
  const OptimizerRule rule = rule_of(sgd);
  EXPECT_EQ(rule.options, (Options{
                              {"optimizer", "momentum"},
                              {"momentum", "0.5"},
                              {"weight-decay", "0.125"},
                          }));
  EXPECT_EQ(rule.learning_rate, 0.25);
  EXPECT_EQ(rule.has_no_rule, "");
}

TEST(OptimizerRuleTest, WithoutOneItStandsForItsMomentum) {
  const torch::optim::SGD damped(parameters(), SGDOptions(0.1).momentum(0.8).dampening(0.3));
  EXPECT_EQ(rule_of(damped).options, (Options{{"optimizer", "momentum"}, {"momentum", "0.8"}}));
  EXPECT_THAT(rule_of(damped).has_no_rule, HasSubstr("dampening"));

  const torch::optim::Adam amsgrad(parameters(), AdamOptions(0.1).amsgrad(true));
  EXPECT_EQ(rule_of(amsgrad).options, (Options{{"optimizer", "sgd"}}));
  EXPECT_THAT(rule_of(amsgrad).has_no_rule, HasSubstr("amsgrad"));
}

TEST(OptimizerRuleTest, OfGroupsThatDifferInTheirDecayAlone) {
  const SGDOptions one = SGDOptions(0.1).momentum(0.7).weight_decay(0.1);
  // In later versions of libtorch a group takes from `one` the options that are at their defaults.
  const SGDOptions other = SGDOptions(0.1).momentum(0.7).weight_decay(0.2);
  const torch::optim::SGD sgd({group(one), group(other)}, one);
  EXPECT_EQ(rule_of(sgd).options, (Options{{"optimizer", "momentum"}, {"momentum", "0.7"}}));
  EXPECT_EQ(rule_of(sgd).learning_rate, 0.1);
  EXPECT_THAT(rule_of(sgd).has_no_rule, HasSubstr("give all groups the same options"));
}

TEST(OptimizerRuleTest, OfGroupsThatDifferInTheirMomentum) {
  const SGDOptions one = SGDOptions(0.1).momentum(0.7);
  const torch::optim::SGD sgd({group(one), group(SGDOptions(0.1).momentum(0.9))}, one);
  EXPECT_EQ(rule_of(sgd).options, (Options{{"optimizer", "sgd"}}));
  EXPECT_THAT(rule_of(sgd).has_no_rule, HasSubstr("give all groups the same options"));
}

TEST(OptimizerRuleTest, OfGroupsThatDifferInTheirRate) {
  const SGDOptions one = SGDOptions(0.1).momentum(0.7);
  const torch::optim::SGD sgd({group(one), group(SGDOptions(0.2).momentum(0.7))}, one);
  EXPECT_EQ(rule_of(sgd).options.at("momentum"), "0.7");
  EXPECT_THAT(rule_of(sgd).has_no_rule, HasSubstr("give all groups the same options"));
}

/// Takes a step, applies `change` to the optimizer's options, and takes another step. Returns for
/// each of two workers why the second step was refused; empty if it was not.
std::vector<std::string> after(const std::string& scheme,
                               const std::function<void(SGDOptions&)>& change) {
  std::vector<std::string> refusals(2);
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job(InitOptions{.scheme = scheme, .entry = entry});
    Linear net;
    torch::optim::SGD sgd(net.parameters(), SGDOptions(0.1).momentum(0.9));
    DistributedOptimizer optimizer(job, net, sgd, DistributedOptions{.batch_size = 4});
    net.forward(torch::ones({4, 6})).sum().backward();
    optimizer.step(4);
    change(static_cast<SGDOptions&>(sgd.param_groups().front().options()));
    try {
      optimizer.step(4);
    } catch (const ConfigError& error) {
      refusals.at(entry.rank) = error.what();
    }
    optimizer.finish();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  return refusals;
}

TEST(OptimizerRuleTest, AChangedOneIsRefusedUnderAServer) {
  const auto decays = [](SGDOptions& options) { options.weight_decay(0.1); };
  EXPECT_THAT(after("asgd", decays), testing::Each(HasSubstr("such as weight_decay or momentum")));
  const auto slower = [](SGDOptions& options) { options.lr(0.05); };
  EXPECT_THAT(after("asgd", slower), testing::Each(HasSubstr("a learning rate that the program")));
}

TEST(OptimizerRuleTest, AChangedOneIsTakenWhereWorkersStep) {
  const std::vector<std::string> none(2);
  EXPECT_EQ(after("esync", [](SGDOptions& options) { options.weight_decay(0.1); }), none);
  EXPECT_EQ(after("ssgd", [](SGDOptions& options) { options.lr(0.05); }), none);
}

}  // namespace
}  // namespace syncopate::test
