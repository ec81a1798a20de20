// Goal:   a task that ends with the error that ended its node logs nothing; a task that ends with
//         any other error logs a line.
// Method: tasks of a coordinator node over a socket; the test compares the log.

#include "runtime/real_world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "tests/contract/tcp_cluster.hpp"
#include "tests/support/log_capture.hpp"

namespace syncopate::contract {
namespace {

TEST(RealWorldTask, ReportsAnErrorThatIsNotOfItsNode) {
  LogCapture log;
  RealWorld world(make_coordinator({}, /*shared_memory=*/false));
  world.spawn("averaging", [] { throw TimedOut("nobody came"); }).reset();
  EXPECT_THAT(log.text(), testing::HasSubstr("averaging ended with an unexpected error: nobody"));
}

TEST(RealWorldTask, EndsQuietlyWithItsNode) {
  LogCapture log;
  RealWorld world(make_coordinator({}, /*shared_memory=*/false));
  const auto event = world.make_event();
  auto task = world.spawn("averaging", [&] { event->wait(no_deadline); });
  world.cancel(std::make_exception_ptr(TimedOut("the job has ended")));
  task.reset();
  EXPECT_EQ(log.text(), "");
}

}  // namespace
}  // namespace syncopate::contract
