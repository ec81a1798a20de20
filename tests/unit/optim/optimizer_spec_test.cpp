// Goal:   the list of optimizers has the right facts, and a parameter server has an update rule for
//         each of them.
// Method: the list is compared with a table; an update rule is made for each optimizer.

#include "optim/optimizer_spec.hpp"

#include <gtest/gtest.h>

#include <string>

#include "optim/update_rule.hpp"

namespace syncopate {
namespace {

struct Row {
  Optimizer optimizer;
  std::string_view name;
  double rate;
  bool momentum, betas, alpha, epsilon, looks_ahead;
};

constexpr Row rows[] = {
    {Optimizer::sgd, "sgd", 0.2, false, false, false, false, false},
    {Optimizer::momentum, "momentum", 0.05, true, false, false, false, false},
    {Optimizer::nesterov, "nesterov", 0.05, true, false, false, false, true},
    {Optimizer::rmsprop, "rmsprop", 0.001, false, false, true, true, false},
    {Optimizer::adam, "adam", 0.001, false, true, false, true, false},
    {Optimizer::adamw, "adamw", 0.001, false, true, false, true, false},
    {Optimizer::adagrad, "adagrad", 0.01, false, false, false, true, false},
};

TEST(OptimizerSpec, HoldsTheFactsOfEachOptimizer) {
  ASSERT_EQ(names_of(Optimizer{}).size(), std::size(rows));
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const OptimizerSpec spec = optimizer_spec(row.optimizer);
    EXPECT_EQ(name_of_value(row.optimizer), row.name);
    EXPECT_EQ(value_named<Optimizer>(row.name), row.optimizer);
    EXPECT_EQ(usual_learning_rate(row.optimizer), row.rate);
    EXPECT_EQ(spec.reads_momentum, row.momentum);
    EXPECT_EQ(spec.reads_betas, row.betas);
    EXPECT_EQ(spec.reads_alpha, row.alpha);
    EXPECT_EQ(spec.reads_epsilon, row.epsilon);
    EXPECT_EQ(spec.looks_ahead, row.looks_ahead);
  }
}

TEST(OptimizerSpec, NamesAnUpdateRuleOfTheServer) {
  for (const auto& [name, optimizer] : names_of(Optimizer{})) {
    EXPECT_NE(make_update_rule({.name = std::string(name)}, 3), nullptr) << name;
  }
}

}  // namespace
}  // namespace syncopate
