// Goal:   all workers divide a step alike, in the parts of the first to come, however far others
//         read ahead.
// Method: workers propose other parts for the same steps; the book forgets old runs.
#include "data/step_book.hpp"

#include <gmock/gmock.h>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;

TEST(StepBookTest, GivesEveryWorkerThePartsOfTheFirst) {
  StepBook book(2);
  EXPECT_THAT(book.parts({0}, 0, {20, 20}), ElementsAre(20, 20));
  EXPECT_THAT(book.parts({0}, StepBook::run, {32, 8}), ElementsAre(32, 8)) << "the next run";
  EXPECT_THAT(book.parts({0}, StepBook::run - 1, {32, 8}), ElementsAre(20, 20));
  EXPECT_THAT(book.parts({0}, 2 * StepBook::run - 1, {30, 10}), ElementsAre(32, 8));
  EXPECT_THAT(book.parts({1}, 0, {30, 10}), ElementsAre(30, 10)) << "the next epoch";
}

TEST(StepBookTest, ForgetsTheOldestRuns) {
  StepBook book(1);
  for (std::uint64_t run = 0; run <= StepBook::kept; ++run) {
    book.parts({0}, run * StepBook::run, {1});
  }
  EXPECT_THAT(book.parts({0}, StepBook::run, {2}), ElementsAre(1));
  EXPECT_THAT(book.parts({0}, 0, {2}), ElementsAre(2));
}

TEST(StepBookTest, RefusesPartsOfOtherWorkers) {
  StepBook book(2);
  EXPECT_THROW(book.parts({0}, 0, {40}), ProtocolError);
  EXPECT_THROW(book.parts({0}, 0, {40, 0}), ProtocolError);
  EXPECT_THAT(book.parts({0}, 0, {20, 20}), ElementsAre(20, 20));
}

}  // namespace
}  // namespace syncopate
