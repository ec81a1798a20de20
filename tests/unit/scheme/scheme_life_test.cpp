// Goal:   a scheme is called only in the order of its life.
// Method: every call at every point of it.
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {
namespace {

TEST(SchemeLife, TakesItsStepsThenLeaves) {
  SchemeLife life;
  for (int step = 0; step < 3; ++step) {
    life.expect_between();
    life.pass_begins();
    life.pass_ends();
    life.pass_ends();  // a step without a pass
  }
  life.leaves();
}

TEST(SchemeLife, LeavesInThePassOfACancelledStep) {
  SchemeLife life;
  life.pass_begins();
  EXPECT_NO_THROW(life.leaves());
}

TEST(SchemeLife, RefusesWhatHasAnotherPlace) {
  SchemeLife life;
  life.pass_begins();
  EXPECT_THROW(life.pass_begins(), InternalError);
  EXPECT_THROW(life.expect_between(), InternalError);
  life.leaves();
  EXPECT_THROW(life.leaves(), InternalError);
  EXPECT_THROW(life.pass_begins(), InternalError);
  EXPECT_THROW(life.pass_ends(), InternalError);
  EXPECT_THROW(life.expect_between(), InternalError);
}

}  // namespace
}  // namespace syncopate
