// Goal:   time to accuracy is the time of the first evaluation at the target that the next
//         evaluation confirms.
// Method: hand-made evaluations.

#include "report/scoreboard.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

namespace syncopate {
namespace {

Scoreboard with(std::optional<double> target, std::initializer_list<double> accuracies) {
  Scoreboard scoreboard(target);
  double seconds = 0;
  for (const double accuracy : accuracies) {
    seconds += 10;
    scoreboard.add({.samples = static_cast<std::uint64_t>(seconds),
                    .training_seconds = seconds,
                    .accuracy = accuracy});
  }
  return scoreboard;
}

TEST(Scoreboard, CountsTheFirstConfirmedEvaluation) {
  EXPECT_EQ(with(0.8, {0.7, 0.81, 0.82}).time_to_target_seconds(), 20.0);
  EXPECT_EQ(with(0.8, {0.8, 0.8}).time_to_target_seconds(), 10.0);
}

TEST(Scoreboard, DoesNotCountALuckyOne) {
  EXPECT_EQ(with(0.8, {0.85, 0.7, 0.81, 0.82}).time_to_target_seconds(), 30.0);
  EXPECT_EQ(with(0.8, {0.7, 0.85}).time_to_target_seconds(), std::nullopt);
}

TEST(Scoreboard, DoesNotTakeASecondTestOfOneModelForAConfirmation) {
  Scoreboard scoreboard = with(0.8, {0.7, 0.85});
  EvaluationResult again = scoreboard.results().back();
  again.training_seconds += 0.001;
  scoreboard.add(again);
  EXPECT_EQ(scoreboard.time_to_target_seconds(), std::nullopt);
  again.samples += 64;
  scoreboard.add(again);
  EXPECT_EQ(scoreboard.time_to_target_seconds(), again.training_seconds);
}

TEST(Scoreboard, HasNoTimeWithoutATarget) {
  EXPECT_EQ(with(std::nullopt, {0.9, 0.9}).time_to_target_seconds(), std::nullopt);
}

TEST(Scoreboard, KnowsTheLastAndTheBest) {
  const Scoreboard scoreboard = with(std::nullopt, {0.7, 0.9, 0.8});
  EXPECT_EQ(scoreboard.last_accuracy(), 0.8);
  EXPECT_EQ(scoreboard.best_accuracy(), 0.9);
  EXPECT_EQ(with(0.5, {}).last_accuracy(), std::nullopt);
  EXPECT_EQ(with(0.5, {}).best_accuracy(), std::nullopt);
}

TEST(Scoreboard, ReadsBackNumbersThatAreNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const EvaluationResult lost{.round = 3,
                              .samples = 4,
                              .epoch = 5,
                              .training_seconds = 6,
                              .accuracy = std::nan(""),
                              .loss = infinity,
                              .evaluation_seconds = infinity};
  const auto line = nlohmann::ordered_json::parse(to_json(lost).dump());
  EXPECT_TRUE(line.at("loss").is_null());
  const EvaluationResult read = evaluation_from(line);
  EXPECT_EQ(read.round, 3U);
  EXPECT_TRUE(std::isnan(read.loss) && std::isnan(read.accuracy));
  EXPECT_TRUE(std::isnan(read.evaluation_seconds));
}

}  // namespace
}  // namespace syncopate
