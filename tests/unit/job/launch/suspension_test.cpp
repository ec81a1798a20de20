// Goal:   no deadline of a process passes while the process is suspended.
// Method: a forked process with its own world is stopped for longer than its deadline and then
//         continued; it reports the time on its clock, and the result of a wait that had begun
//         before.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "job/launch/descriptor.hpp"
#include "runtime/real_world.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

struct Outcome {
  std::int64_t elapsed = 0;
  bool notified = false;
};

/// Starts a task that waits for an event with a deadline, waits for `go`, and then notifies the
/// task. Returns the elapsed time and whether the task was notified.
Outcome wait_through_suspension(int ready, int go) {
  RealWorld world(nullptr);
  const auto event = world.make_event();
  const TimePoint begun = world.now();
  Outcome outcome;
  const auto task = world.spawn("waiting", [&] { outcome.notified = event->wait(begun + 2200ms); });
  char byte = 0;
  EXPECT_EQ(::write(ready, &byte, 1), 1);
  EXPECT_EQ(::read(go, &byte, 1), 1);
  outcome.elapsed = (world.now() - begun).count();
  event->notify();
  task->join();
  return outcome;
}

TEST(Suspension, StopsTheClockOfTheProcess) {
  Pipe ready = make_pipe();
  Pipe go = make_pipe();
  for (const Pipe* const pipe : {&ready, &go}) {
    ASSERT_EQ(::fcntl(pipe->read.get(), F_SETFL, 0), 0);
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Outcome outcome = wait_through_suspension(ready.write.get(), go.read.get());
    ::_exit(::write(ready.write.get(), &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);
  int status = 0;
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ::poll(nullptr, 0, 3500);  // the suspension itself
  ASSERT_EQ(::write(go.write.get(), &byte, 1), 1);
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  Outcome outcome;
  ASSERT_EQ(::read(ready.read.get(), &outcome, sizeof outcome),
            static_cast<ssize_t>(sizeof outcome));
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_LT(Duration(outcome.elapsed), 2200ms) << "a second of 3.5 counts at the most";
  EXPECT_TRUE(outcome.notified);
}

}  // namespace
}  // namespace syncopate
