// Goal:   the supervisor forwards requests to end a job, first to programs that handle them, and
//         ends a job that does not answer.
// Method: real processes with small bodies that wait for each other through pipes, never for a
//         fixed time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/errors.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/supervisor.hpp"
#include "tests/unit/job/launch/supervised.hpp"

namespace syncopate {
namespace {

using test::ends_of;
using test::say;
using test::SupervisorTest;
using test::wait_for_the_end;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(SupervisorTest, AsksTheCoordinatorAtTheFirstInterrupt) {
  recorder_.on_event = [] { ::kill(::getpid(), SIGINT); };
  add("coordinator", [this] {
    sigset_t asked;
    ::sigemptyset(&asked);
    ::sigaddset(&asked, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &asked, nullptr);
    say(events_, "ready\n");
    int signal = 0;
    ::sigwait(&asked, &signal);
    std::fputs("asked\n", stdout);
    return 0;
  });
  EXPECT_EQ(run().exit_status, exit_status::interrupted);
  EXPECT_THAT(recorder_.lines, ElementsAre("coordinator: asked"));
  EXPECT_THAT(recorder_.notices, Contains(HasSubstr("finishing the round")));
}

TEST_F(SupervisorTest, SaysOnceThatTheCoordinatorIsStoppedAndByWhatItGoesOn) {
  options_.stop = std::chrono::milliseconds(40);
  pid_t coordinator = 0;
  recorder_.on_event = [&] { coordinator = std::stoi(recorder_.events.front()); };
  recorder_.on_notice = [&] {
    EXPECT_THAT(recorder_.notices.back(), HasSubstr("is stopped by a signal"));
    EXPECT_THAT(recorder_.notices.back(),
                HasSubstr("kill -CONT " + std::to_string(coordinator) + " lets it go on"));
    ::kill(coordinator, SIGCONT);
  };
  add("coordinator", [this] {
    say(events_, std::to_string(::getpid()) + "\n");
    ::raise(SIGSTOP);
    return 0;
  });
  EXPECT_EQ(run().exit_status, 0);
  EXPECT_EQ(recorder_.notices.size(), 1U);
}

/// Handles SIGTERM and waits for it.
int wait_for_termination() {
  static volatile std::sig_atomic_t terminated = 0;
  sigset_t masked;
  sigset_t before;
  ::sigemptyset(&masked);
  ::sigaddset(&masked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &masked, &before);
  ::signal(SIGTERM, [](int) { terminated = 1; });
  std::fputs("has a handler\n", stdout);
  std::fflush(stdout);
  while (terminated == 0) {
    ::sigsuspend(&before);
  }
  std::fputs("saves\n", stdout);
  return 0;
}

TEST_F(SupervisorTest, GivesSigtermToProgramsThatHandleItBeforeItAsksTheCoordinator) {
  ProgramEnds ends;
  options_.programs = &ends;
  add("coordinator", [&] {
    ::signal(SIGTERM, [](int) { ::_exit(9); });
    return ends_of(ends, 2).size() == 2 ? 0 : 1;
  });
  add("worker 0", wait_for_termination);
  // The program is the child of a process without a handler, and has a child that inherited its
  // own.
  add("worker 1", [] {
    const pid_t program = ::fork();
    if (program > 0) {
      int status = 0;
      return ::waitpid(program, &status, 0) == program ? WEXITSTATUS(status) : 1;
    }
    const pid_t child = ::fork();
    const int status = wait_for_termination();
    if (child > 0) {
      ::kill(child, SIGKILL);
    }
    return status;
  });
  recorder_.on_output = [handlers = 0]() mutable {
    if (++handlers == 3) {  // all three processes have a handler
      ::kill(::getpid(), SIGTERM);
    }
  };
  EXPECT_EQ(run().exit_status, exit_status::success);
  EXPECT_THAT(recorder_.notices,
              ElementsAre("SIGTERM has gone to 2 programs with handlers for it; the job ends "
                          "within 10 s"));
  EXPECT_EQ(std::ranges::count(recorder_.lines, "worker 0: saves"), 1);
  EXPECT_EQ(std::ranges::count(recorder_.lines, "worker 1: saves"), 1);
}

TEST_F(SupervisorTest, AsksTheCoordinatorOnceProgramsHaveHadTimeForSigterm) {
  ProgramEnds ends;
  options_.programs = &ends;
  options_.handling = std::chrono::milliseconds(1);
  add("coordinator", [this] {
    sigset_t asked;
    ::sigemptyset(&asked);
    ::sigaddset(&asked, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &asked, nullptr);
    say(events_, "{\"event\": \"status\"}\n");
    int signal = 0;
    ::sigwait(&asked, &signal);
    std::fputs("asked\n", stdout);
    return 0;
  });
  add("worker 0", [] {
    ::signal(SIGTERM, [](int) {});
    std::fputs("has a handler\n", stdout);
    std::fflush(stdout);
    return wait_for_the_end();
  });
  recorder_.on_output = [said = false]() mutable {
    if (!std::exchange(said, true)) {
      ::kill(::getpid(), SIGTERM);
    }
  };
  EXPECT_EQ(run().exit_status, exit_status::interrupted);
  EXPECT_THAT(recorder_.notices,
              Contains(HasSubstr("SIGTERM has gone to 1 program with a handler")));
}

TEST_F(SupervisorTest, KeepsTheStatusOfAJobThatHasEndedWhenAnInterruptComes) {
  Pipe noticed = make_pipe();
  recorder_.on_event = [&] {
    ::kill(::getpid(), SIGINT);
    say(noticed.write.get(), "1");
  };
  add("coordinator", [&] {
    say(events_, R"({"event":"finished","reason":"every epoch is done"})"
                 "\n");
    pollfd readable{noticed.read.get(), POLLIN, 0};
    return ::poll(&readable, 1, /*timeout=*/-1) == 1 ? 0 : 1;
  });
  EXPECT_EQ(run().exit_status, exit_status::success);
  EXPECT_THAT(recorder_.notices, IsEmpty());
}

TEST(PassOverNextRequests, LetsOneOfEachKindGoByAndNoSecond) {
  const auto handler = [](int signal) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    return action.sa_handler;
  };
  ::signal(SIGHUP, SIG_IGN);
  {
    const SignalInbox inbox;
    ::kill(::getpid(), SIGINT);  // remains pending, since the inbox ends without taking it
    pass_over_next_requests();
  }
  EXPECT_EQ(handler(SIGINT), SIG_DFL) << "it has come";
  EXPECT_NE(handler(SIGTERM), SIG_DFL);
  ::raise(SIGTERM);
  EXPECT_EQ(handler(SIGTERM), SIG_DFL);
  EXPECT_EQ(handler(SIGHUP), SIG_IGN) << "as under nohup";
  ::signal(SIGHUP, SIG_DFL);
}

TEST_F(SupervisorTest, KillsAllAtTheSecondInterrupt) {
  // Uses two different signals, since two equal signals may arrive as one.
  recorder_.on_event = [signal = SIGTERM]() mutable {
    ::kill(::getpid(), std::exchange(signal, SIGINT));
  };
  add("coordinator", [this] {
    ::signal(SIGTERM, SIG_IGN);
    say(events_, "once\n");
    say(events_, "twice\n");
    return wait_for_the_end();
  });
  add("worker 0", wait_for_the_end);
  EXPECT_EQ(run().exit_status, exit_status::interrupted);
}

TEST_F(SupervisorTest, EndsAJobWhoseCoordinatorDoesNotAnswerTheFirstInterrupt) {
  recorder_.on_event = [] { ::kill(::getpid(), SIGINT); };
  options_.answer = std::chrono::milliseconds(30);
  options_.requested_grace = std::chrono::milliseconds(10);
  add("coordinator", [this] {
    ::signal(SIGTERM, SIG_IGN);
    say(events_, "ready\n");
    return wait_for_the_end();
  });
  add("worker 0", wait_for_the_end);
  EXPECT_EQ(run().exit_status, exit_status::interrupted);
  EXPECT_THAT(
      recorder_.notices,
      Contains(HasSubstr("does not answer: the job ends with what its last checkpoint has")));
}

TEST_F(SupervisorTest, BlamesNoProcessThatItHasEndedForACoordinatorThatWasStopped) {
  recorder_.on_event = [this] {
    if (recorder_.events.back() == "ready") {
      ::kill(::getpid(), SIGINT);
    }
  };
  options_.answer = std::chrono::milliseconds(30);
  add("coordinator", [this] {
    ::signal(SIGTERM, SIG_IGN);
    say(events_, "ready\n");
    ::raise(SIGSTOP);
    say(events_, R"({"event":"failed","error":"worker 0 died"})"
                 "\n");
    return 1;
  });
  add("worker 0", wait_for_the_end);
  const Supervisor::Result result = run();
  EXPECT_EQ(result.exit_status, exit_status::interrupted);
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(recorder_.events, ElementsAre("ready"));
}

}  // namespace
}  // namespace syncopate
