// Goal:   the supervisor starts the processes of a job, passes on their output and ends them, as
//         described in `src/job/launch/supervisor.hpp`.
// Method: real processes with small bodies that wait for each other through pipes, never for a
//         fixed time. tests/process/ covers a terminal and a killed supervisor.
#include "job/launch/supervisor.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/errors.hpp"
#include "job/launch/exit_status.hpp"
#include "tests/support/sanitizers.hpp"
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
using testing::Not;
using testing::UnorderedElementsAre;

TEST_F(SupervisorTest, HearsWhatEachProcessSays) {
  add("coordinator", [this] {
    say(events_, "{\"event\": 1}\n{\"event\": 2}\n");
    return 0;
  });
  add("worker 0", [] {
    std::fputs("to output\n", stdout);
    return 0;
  });
  add("worker 1", [] {
    say(STDERR_FILENO, "to errors, without an end");
    return 0;
  });
  const auto result = run();
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(recorder_.events, ElementsAre("{\"event\": 1}", "{\"event\": 2}"));
  EXPECT_THAT(recorder_.lines,
              UnorderedElementsAre("worker 0: to output", "worker 1: to errors, without an end"));
  EXPECT_THAT(recorder_.notices, IsEmpty());
}

TEST_F(SupervisorTest, GivesEveryLineOfAProcessThatSaysMuch) {
  constexpr int count = 20000;
  add("coordinator", [] {
    for (int i = 0; i < count; ++i) {
      std::printf("line %d of many, each long enough to fill pipes\n", i);
    }
    return 0;
  });
  EXPECT_EQ(run().exit_status, 0);
  ASSERT_EQ(recorder_.lines.size(), std::size_t{count});
  EXPECT_THAT(recorder_.lines.back(), HasSubstr("line 19999 of many"));
}

TEST_F(SupervisorTest, TurnsAnErrorIntoALineAndAStatus) {
  add("coordinator", []() -> int { throw ConfigError("no such thing"); });
  const auto result = run();
  EXPECT_EQ(result.exit_status, exit_status::refused);
  EXPECT_THAT(result.failure, HasSubstr("ended with exit status 2"));
  EXPECT_THAT(recorder_.lines, ElementsAre("coordinator: syncopate: no such thing"));
}

TEST_F(SupervisorTest, KillsProcessesThatOutliveAFailedOne) {
  options_.grace = std::chrono::milliseconds(1);
  add("coordinator", wait_for_the_end);
  add("worker 0", [] { return 1; });
  const auto result = run();
  EXPECT_EQ(result.exit_status, exit_status::failure);
  EXPECT_THAT(result.failure, HasSubstr("worker 0 (process "));
}

TEST_F(SupervisorTest, TellsOfAKilledProcessAtOnce) {
  options_.grace = std::chrono::milliseconds(1);
  add("coordinator", wait_for_the_end);
  add("worker 0", [] { return ::kill(::getpid(), SIGKILL); });
  EXPECT_EQ(run().exit_status, exit_status::failure);
  EXPECT_THAT(recorder_.notices, ElementsAre(HasSubstr("was killed by signal 9")));
}

TEST_F(SupervisorTest, TellsOnceOfEachProcessThatMayBeLostAndGoesOn) {
  Pipe noticed = make_pipe();
  ::fcntl(noticed.read.get(), F_SETFL, 0);
  recorder_.on_notice = [&] { say(noticed.write.get(), "1"); };
  add("coordinator", [&] {
    for (int notices = 0; notices < 2; ++notices) {
      char byte = 0;
      if (::read(noticed.read.get(), &byte, 1) != 1) {
        return 1;
      }
    }
    return 0;
  });
  add("worker 0", [] { return ::kill(::getpid(), SIGKILL); });
  add("worker 1", [] { return 1; });
  options_.children[1].may_be_lost = true;
  options_.children[2].may_be_lost = true;
  const auto result = run();
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(recorder_.notices, UnorderedElementsAre(HasSubstr("was killed by signal 9"),
                                                      HasSubstr("ended with exit status 1")));
}

TEST_F(SupervisorTest, LetsProgramsGoOnAfterTheJobHasEndedWell) {
  ProgramEnds ends;
  options_.programs = &ends;
  options_.grace = std::chrono::milliseconds(1);
  Pipe seen = make_pipe();
  ::fcntl(seen.read.get(), F_SETFL, 0);
  recorder_.on_event = [&] { say(seen.write.get(), "1"); };
  add("coordinator", [&] {
    say(events_, "{\"event\":\"finished\"}\n");
    return ends_of(ends, 1)
        .front()
        .wait_status;  // shows a kill if the end of the job had ended the program
  });
  add("worker 0", [&] {
    char byte = 0;
    return ::read(seen.read.get(), &byte, 1) == 1 ? 0 : 1;
  });
  const auto result = run();
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(recorder_.notices, IsEmpty());
}

TEST_F(SupervisorTest, ReportsTheEndOfEachProgramToTheCoordinator) {
  ProgramEnds ends;
  options_.programs = &ends;
  add("coordinator", [&] {
    for (const ProgramEnd& end : ends_of(ends, 2)) {
      std::printf("%u %s\n", end.rank, describe_end(end.wait_status).c_str());
    }
    return 0;
  });
  add("worker 0", [] { return 0; });
  add("worker 1", [] { return 7; });
  EXPECT_THAT(run().failure, HasSubstr("ended with exit status 7"));
  EXPECT_THAT(recorder_.lines, UnorderedElementsAre("coordinator: 0 ended with exit status 0",
                                                    "coordinator: 1 ended with exit status 7"));
}

TEST_F(SupervisorTest, StartsALostProcessAgainUntilItStays) {
  Pipe starts = make_pipe();
  Pipe stays = make_pipe();
  ::fcntl(stays.read.get(), F_SETFL, 0);
  options_.restart_delays = {std::chrono::milliseconds(1)};
  add("coordinator", [&] {
    char byte = 0;
    return ::read(stays.read.get(), &byte, 1) == 1 ? 0 : 1;
  });
  add("evaluator", [&] {
    say(starts.write.get(), "1");
    int count = 0;  // number of starts so far
    ::ioctl(starts.read.get(), FIONREAD, &count);
    std::printf("start %d\n", count);
    std::fflush(stdout);
    if (count < 3) {
      return ::kill(::getpid(), SIGKILL);
    }
    say(stays.write.get(), "1");
    return 0;
  });
  options_.children[1].may_be_lost = true;
  options_.children[1].restarts = 3;
  const auto result = run();
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(recorder_.lines,
              ElementsAre("evaluator: start 1", "evaluator: start 2", "evaluator: start 3"));
  EXPECT_THAT(recorder_.notices,
              ElementsAre(testing::AllOf(HasSubstr("evaluator (process "),
                                         HasSubstr("was killed by signal 9 (Killed); it is started "
                                                   "again (1 of 3)")),
                          HasSubstr("it is started again (2 of 3)")));
}

TEST_F(SupervisorTest, HoldsUpNoEndForAProcessThatIsToBeStartedAgain) {
  Pipe dead = make_pipe();
  ::fcntl(dead.read.get(), F_SETFL, 0);
  options_.restart_delays = {std::chrono::hours(1)};
  add("coordinator", [&] {
    char byte = 0;
    return ::read(dead.read.get(), &byte, 1) == 0 ? 0 : 1;  // the evaluator has ended
  });
  add("evaluator", [] { return ::kill(::getpid(), SIGKILL); });
  options_.children[1].may_be_lost = true;
  options_.children[1].restarts = 3;
  options_.children[1].alone.push_back(std::move(dead.write));
  EXPECT_EQ(run().exit_status, 0);
  EXPECT_THAT(recorder_.notices, Not(Contains(HasSubstr("started again"))));
}

TEST_F(SupervisorTest, EndsAProcessThatWasStartedAgainWithItsCoordinator) {
  Pipe starts = make_pipe();
  Pipe stays = make_pipe();
  ::fcntl(stays.read.get(), F_SETFL, 0);
  options_.restart_delays = {std::chrono::milliseconds(1)};
  options_.grace = std::chrono::hours(1);
  add("coordinator", [&] {
    char byte = 0;
    return ::read(stays.read.get(), &byte, 1) == 1 ? 0 : 1;
  });
  add("evaluator", [&] {
    char byte = 0;
    if (::read(starts.read.get(), &byte, 1) == 1) {
      return ::kill(::getpid(), SIGKILL);
    }
    say(stays.write.get(), "1");
    return wait_for_the_end();
  });
  say(starts.write.get(), "1");
  options_.children[1].may_be_lost = true;
  options_.children[1].restarts = 3;
  EXPECT_EQ(run().exit_status, 0);
}

/// Prevents this process from opening more descriptors until the end of the scope.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    do {
      taken_.emplace_back(::dup(STDIN_FILENO));
    } while (taken_.back().get() < enough_to_poll);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(taken_.back().get()) + 1;
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  /// Minimum of the limit: `poll` accepts at most as many descriptors as the limit allows.
  static constexpr int enough_to_poll = 64;

  rlimit before_{};
  std::vector<Descriptor> taken_;  ///< occupy all numbers below the limit
};

TEST_F(SupervisorTest, GoesOnWithoutAProcessThatCannotBeStartedAgain) {
  if (sanitizer_needs_descriptors) {
    GTEST_SKIP() << "the sanitizer needs descriptors";
  }
  Pipe dies = make_pipe();
  Pipe noticed = make_pipe();
  ::fcntl(dies.read.get(), F_SETFL, 0);
  ::fcntl(noticed.read.get(), F_SETFL, 0);
  options_.restart_delays = {std::chrono::milliseconds(1)};
  std::optional<NoMoreDescriptors> scarce;
  recorder_.on_event = [&] {
    scarce.emplace();
    say(dies.write.get(), "1");
  };
  recorder_.on_notice = [&] { say(noticed.write.get(), "1"); };
  add("coordinator", [&] {
    say(events_, "ready\n");
    char byte = 0;
    const auto read = [&] { return ::read(noticed.read.get(), &byte, 1); };
    return read() == 1 && read() == 1 ? 0 : 1;
  });
  add("evaluator", [&] {
    char byte = 0;
    return ::read(dies.read.get(), &byte, 1) == 1 ? ::kill(::getpid(), SIGKILL) : 1;
  });
  options_.children[1].may_be_lost = true;
  options_.children[1].restarts = 3;
  EXPECT_EQ(run().exit_status, 0);
  EXPECT_THAT(recorder_.notices, ElementsAre(HasSubstr("it is started again (1 of 3)"),
                                             HasSubstr("evaluator: cannot ")));
}

TEST_F(SupervisorTest, LeavesDescriptorsToTheirOwnerAlone) {
  Pipe pipe = make_pipe();
  const int end = pipe.write.get();
  add("coordinator", [] { return 0; });
  add("worker 0", [end] { return ::fcntl(end, F_GETFD) == -1 ? 0 : 1; });
  add("worker 1", [end] { return ::fcntl(end, F_GETFD) == -1 ? 1 : 0; });
  options_.children[2].alone.push_back(std::move(pipe.write));
  EXPECT_EQ(run().failure, "");
}

TEST_F(SupervisorTest, GivesProcessesGroupsOfTheirOwnAndDefaultSignals) {
  add("coordinator", [] {
    sigset_t blocked;
    ::sigprocmask(SIG_SETMASK, nullptr, &blocked);
    return ::getpgrp() == ::getpid() && ::sigismember(&blocked, SIGTERM) == 0 ? 0 : 1;
  });
  EXPECT_EQ(run().exit_status, 0);
}

TEST_F(SupervisorTest, KillsACoordinatorThatDoesNotEndAfterItsLastEvent) {
  options_.grace = std::chrono::milliseconds(10);
  add("coordinator", [this] {
    ::signal(SIGTERM, SIG_IGN);
    say(events_, R"({"event":"finished","reason":"every epoch is done"})"
                 "\n");
    return wait_for_the_end();
  });
  EXPECT_EQ(run().exit_status, exit_status::success);
  EXPECT_THAT(recorder_.notices, ElementsAre(HasSubstr(" does not end; it is killed")));
}

}  // namespace
}  // namespace syncopate
