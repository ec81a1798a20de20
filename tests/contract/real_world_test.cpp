// Goal:   a task that ends by the error of its node is no surprise; one that ends by another is.
// Method: tasks of a node over a socket; the log is compared.

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
