// Goal:   an optimizer that restores an OptimizerState continues bit for bit as the saved one. The
//         state of another kind of optimizer is refused and changes nothing.
// Method: for each rule and variant, one of two replicas continues from the state of the other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>

#include "base/errors.hpp"
#include "tests/torch/examples.hpp"
#include "torch/optimizers.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

struct Rule {
  std::string name;
  ModuleReplica::MakeOptimizer make;
};

template <class Optimizer, class Options>
ModuleReplica::MakeOptimizer with_options(Options options) {
  return [options](std::vector<torch::Tensor> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

std::vector<Rule> rules() {
  namespace optim = torch::optim;
  std::vector<Rule> rules;
  for (const auto& [name, optimizer] : names_of(syncopate::Optimizer{})) {
    rules.push_back({std::string(name), with_optimizer(with_usual_rate(optimizer))});
  }
  rules.push_back({"amsgrad", with_options<optim::Adam>(optim::AdamOptions(0.01).amsgrad(true))});
  rules.push_back(
      {"rmsprop_centered",
       with_options<optim::RMSprop>(optim::RMSpropOptions(0.01).momentum(0.5).centered(true))});
  return rules;
}

void train(Replica& replica, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t step = from; step < to; ++step) {
    replica.backward(tiny_batch(step));
    replica.local_step();
  }
}

class StateOf : public testing::TestWithParam<Rule> {
 protected:
  /// Trains a replica for `steps` steps and loads its state into another one. Expects that both
  /// continue with the same bits.
  void expect_same_continuation(std::uint64_t steps) {
    Watched<Tiny> stopped({.make_optimizer = GetParam().make});
    Watched<Tiny> resumed({.make_optimizer = GetParam().make});
    stopped.replica.initialise(1);
    resumed.replica.initialise(2);
    train(stopped.replica, 0, steps);
    train(resumed.replica, 10, 12);  // the loaded state must replace the state of these steps
    for (const ReplicaVector which : {ReplicaVector::params, ReplicaVector::buffers}) {
      std::ranges::copy(stopped.replica.view(which), resumed.replica.view(which).begin());
    }
    resumed.replica.load_optimizer_state(stopped.replica.optimizer_state());
    train(stopped.replica, steps, steps + 4);
    train(resumed.replica, steps, steps + 4);
    EXPECT_EQ(values_of(resumed.replica, ReplicaVector::params),
              values_of(stopped.replica, ReplicaVector::params));
    EXPECT_EQ(resumed.replica.optimizer_state().slots, stopped.replica.optimizer_state().slots);
  }
};

TEST_P(StateOf, LetsAnotherGoOnBitForBit) {
  expect_same_continuation(3);
}

TEST_P(StateOf, LetsAnotherStartFromTheBeginning) {
  expect_same_continuation(0);
}

INSTANTIATE_TEST_SUITE_P(Rules, StateOf, testing::ValuesIn(rules()),
                         [](const auto& rule) { return rule.param.name; });

ModuleReplica::Options with(const std::string& optimizer) {
  return {.make_optimizer =
              with_optimizer(with_usual_rate(value_named<syncopate::Optimizer>(optimizer)))};
}

TEST(OptimizerStates, NameWhatTheyHold) {
  Watched<Tiny> adam(with("adam"));
  EXPECT_THAT(adam.replica.optimizer_state().slots, IsEmpty());
  train(adam.replica, 0, 5);
  EXPECT_THAT(adam.replica.optimizer_state().slots,
              ElementsAre(Pair("exp_avg", SizeIs(123)), Pair("exp_avg_sq", SizeIs(123))));
  EXPECT_THAT(adam.replica.optimizer_state().counters, ElementsAre(Pair("step", 5)));

  Watched<Tiny> momentum(with("momentum"));
  train(momentum.replica, 0, 1);
  const OptimizerState state = momentum.replica.optimizer_state();
  EXPECT_THAT(state.slots, ElementsAre(Pair("momentum_buffer",
                                            values_of(momentum.replica, ReplicaVector::grads))));
  EXPECT_THAT(state.counters, IsEmpty());

  Watched<Tiny> sgd(with("sgd"));
  train(sgd.replica, 0, 1);
  EXPECT_THAT(sgd.replica.optimizer_state().slots, IsEmpty());
}

TEST(OptimizerStates, AreTheSameOverPiecesAndTensors) {
  Watched<Tiny> pieces({});
  Watched<Tiny> tensors({.grain = ModuleReplica::Grain::tensors});
  for (auto* replica : {&pieces.replica, &tensors.replica}) {
    replica->initialise(1);
    train(*replica, 0, 1);
  }
  EXPECT_EQ(pieces.replica.optimizer_state().slots, tensors.replica.optimizer_state().slots);
}

OptimizerState only_momentum() {
  return {.slots = {{"momentum_buffer", std::vector<float>(123)}}, .counters = {}};
}

std::string refusal(Replica& replica, const OptimizerState& state) {
  try {
    replica.load_optimizer_state(state);
  } catch (const DataError& error) {
    return error.what();
  }
  return "none";
}

TEST(OptimizerStates, AreRefusedByOthersWhichStayAsTheyAre) {
  Watched<Tiny> adam(with("adam"));
  train(adam.replica, 0, 1);
  const OptimizerState before = adam.replica.optimizer_state();
  EXPECT_EQ(refusal(adam.replica, only_momentum()),
            "optimizer state does not fit: Adam here remembers 123 values in each of [exp_avg, "
            "exp_avg_sq] and the counters [step], found 123 values in each of "
            "[momentum_buffer] and the counters []");
  OptimizerState shorter = before;
  shorter.slots["exp_avg"].pop_back();
  EXPECT_EQ(refusal(adam.replica, shorter),
            "optimizer state does not fit: Adam here remembers 123 values in each of [exp_avg, "
            "exp_avg_sq] and the counters [step], found 122 values in each of [exp_avg, "
            "exp_avg_sq] and the counters [step]");
  OptimizerState uncounted = before;
  uncounted.counters.clear();
  EXPECT_NE(refusal(adam.replica, uncounted), "none");
  EXPECT_EQ(adam.replica.optimizer_state().slots, before.slots);
  EXPECT_EQ(adam.replica.optimizer_state().counters, before.counters);
}

TEST(OptimizerStates, OfNothingAreRefusedWhereThereIsAlwaysSomething) {
  Watched<Tiny> adagrad(with("adagrad"));
  EXPECT_EQ(refusal(adagrad.replica, {}),
            "optimizer state does not fit: Adagrad here remembers 123 values in each of [sum] and "
            "the counters [step], found nothing");
  Watched<Tiny> sgd(with("sgd"));
  EXPECT_EQ(refusal(sgd.replica, only_momentum()),
            "optimizer state does not fit: SGD here remembers nothing, found 123 values in each of "
            "[momentum_buffer] and the counters []");
}

TEST(OptimizerStates, OfUnknownOptimizersAreRefused) {
  Watched<Tiny> watched(
      {.make_optimizer = with_options<torch::optim::LBFGS>(torch::optim::LBFGSOptions(0.1))});
  EXPECT_THROW(watched.replica.optimizer_state(), ConfigError);
}

}  // namespace
}  // namespace syncopate::torch_backend
