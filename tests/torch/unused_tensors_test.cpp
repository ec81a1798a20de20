// Goal:   a network that does not use all parameters in each pass trains as in torch, which does
//         not change parameters without a gradient, or is refused with their names.
// Method: every optimizer, with and without weight decay, trains networks with a head that is never
//         used, used in every other pass, or not used at first; the results are compared with a
//         loop of torch in which unused parameters have no gradient.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "tests/torch/examples.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::HasSubstr;

/// Rule that selects one of two heads for a pass.
enum class Use { first_alone, by_turns, second_later };

template <Use use>
struct TwoHeads : torch::nn::Module {
  TwoHeads()
      : first(register_module("first", torch::nn::Linear(36, tiny_classes))),
        second(register_module("second", torch::nn::Linear(36, tiny_classes))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    const int pass = passes++;
    const bool is_second =
        use == Use::by_turns ? pass % 2 == 1 : use == Use::second_later && pass >= 2;
    const torch::Tensor answer = first(x.flatten(1));
    if (use == Use::second_later) return is_second ? answer + second(x.flatten(1)) : answer;
    return is_second ? second(x.flatten(1)) : answer;
  }

  int passes = 0;
  torch::nn::Linear first, second;
};

constexpr int steps_taken = 6;
constexpr std::uint64_t first_seed = 7;

/// Trains a replica for some steps and stores its parameters in `values`. Returns "trained", or the
/// message of the refusal.
template <Use use>
std::string outcome(const OptimizerSettings& settings, std::vector<float>& values) {
  Watched<TwoHeads<use>> watched({.make_optimizer = with_optimizer(settings)});
  watched.replica.initialise(first_seed);
  try {
    for (int step = 0; step < steps_taken; ++step) {
      watched.replica.backward(tiny_batch(static_cast<std::uint64_t>(step)));
      watched.replica.local_step();
    }
  } catch (const ConfigError& error) {
    return error.what();
  }
  values = values_of(watched.replica, ReplicaVector::params);
  return "trained";
}

/// Trains the same network only with torch.
template <Use use>
std::vector<float> trained_by_torch(const OptimizerSettings& settings) {
  const auto module = drawn<TwoHeads<use>>(first_seed);
  const auto optimizer = make_optimizer(settings, module->parameters());
  for (int step = 0; step < steps_taken; ++step) {
    const Batch batch = tiny_batch(static_cast<std::uint64_t>(step));
    for (torch::Tensor& parameter : module->parameters()) parameter.mutable_grad().reset();
    torch::cross_entropy_loss(module->forward(features_of(batch)), torch::tensor(batch.labels))
        .backward();
    optimizer->step();
  }
  return flattened(module->parameters());
}

template <Use use>
void expect_outcome(const OptimizerSettings& settings, const std::string& expected) {
  SCOPED_TRACE(std::string(name_of_value(settings.optimizer)));
  SCOPED_TRACE(settings.weight_decay);
  std::vector<float> values;
  const std::string found = outcome<use>(settings, values);
  EXPECT_THAT(found, HasSubstr(expected));
  if (found != "trained") return;
  EXPECT_THAT(values,
              testing::Pointwise(testing::FloatNear(1e-6F), trained_by_torch<use>(settings)));
}

const char* const unmoved = "has not used second.weight, which the optimizer would move";
const char* const unmoved_first = "has not used first.weight, which the optimizer would move";
const char* const counted = "has used second.weight, which passes before have not";

TEST(UnusedTensors, ThatNoPassUsesStayOrAreRefused) {
  for (const auto& [name, optimizer] : names_of(Optimizer{})) {
    OptimizerSettings settings = with_usual_rate(optimizer);
    expect_outcome<Use::first_alone>(settings, "trained");
    settings.weight_decay = 0.1;
    expect_outcome<Use::first_alone>(settings, unmoved);
  }
}

TEST(UnusedTensors, ByTurnsStayOrAreRefused) {
  for (const auto& [name, optimizer] : names_of(Optimizer{})) {
    const bool trains = optimizer == Optimizer::sgd || optimizer == Optimizer::adagrad;
    const bool counts = optimizer == Optimizer::adam || optimizer == Optimizer::adamw;
    OptimizerSettings settings = with_usual_rate(optimizer);
    expect_outcome<Use::by_turns>(settings, trains   ? "trained"
                                            : counts ? "first.weight"
                                                     : unmoved_first);
    settings.weight_decay = 0.1;
    expect_outcome<Use::by_turns>(settings, unmoved);
  }
}

TEST(UnusedTensors, ThatLaterPassesUseBeginAsInTorch) {
  for (const auto& [name, optimizer] : names_of(Optimizer{})) {
    const bool counts = optimizer == Optimizer::adam || optimizer == Optimizer::adamw;
    expect_outcome<Use::second_later>(with_usual_rate(optimizer), counts ? counted : "trained");
  }
}

/// The momentum in a checkpoint would change a head that only passes before the checkpoint have
/// used.
TEST(UnusedTensors, AreKnownFromACheckpoint) {
  Watched<TwoHeads<Use::by_turns>> before({});
  before.replica.backward(tiny_batch(1));
  before.replica.local_step();

  Watched<TwoHeads<Use::by_turns>> resumed({});
  resumed.replica.load_optimizer_state(before.replica.optimizer_state());
  resumed.module->passes = 1;
  EXPECT_THAT(([&] {
                try {
                  resumed.replica.backward(tiny_batch(2));
                } catch (const ConfigError& error) {
                  return std::string(error.what());
                }
                return std::string("none");
              })(),
              HasSubstr(unmoved_first));
}

}  // namespace
}  // namespace syncopate::torch_backend
