// Goal:   a job ends once, by the right action, with the exit status of its outcome.
// Method: calls in each relevant order of ends and requests, with wait statuses as Linux reports
//         them.
#include "job/launch/job_end.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "job/launch/exit_status.hpp"

namespace syncopate {
namespace {

using Action = JobEnd::Action;

/// Returns the wait status of a process that returned `status`.
constexpr int exited(int status) {
  return status << 8;
}

constexpr int killed_by(int signal) {
  return signal;
}

std::vector<bool> all_needed(std::size_t processes) {
  return std::vector<bool>(processes, false);
}

TEST(JobEndTest, SucceedsWhenAllDo) {
  JobEnd end(all_needed(3));
  EXPECT_EQ(end.ended(1, exited(0)), Action::none);
  EXPECT_EQ(end.ended(2, exited(0)), Action::none);
  EXPECT_FALSE(end.all_ended());
  EXPECT_EQ(end.ended(0, exited(0)), Action::start_grace);
  EXPECT_TRUE(end.all_ended());
  EXPECT_FALSE(end.first_failure());
  EXPECT_EQ(end.exit_status(), exit_status::success);
}

TEST(JobEndTest, NamesTheFailureOfTheProcessThatHasLeftFirst) {
  JobEnd end(all_needed(4), {}, true);
  for (const std::size_t process : {1, 2, 3}) {
    end.left(process);  // leaves an earlier job, which was a success
  }
  end.left(3);
  end.left(1);
  end.ended(1, exited(1));
  EXPECT_EQ(end.first_failure()->process, 1u);
  end.ended(3, killed_by(SIGSEGV));
  end.ended(2, exited(1));
  EXPECT_EQ(end.first_failure()->process, 3u);
  EXPECT_EQ(end.first_failure()->wait_status, killed_by(SIGSEGV));
}

TEST(JobEndTest, ForgetsInATrainingWhatHasLeftAJobBefore) {
  JobEnd end(all_needed(3), {}, true);
  end.left(2);
  end.left(1);
  end.trains(true);
  end.ended(1, killed_by(SIGSEGV));
  end.ended(2, exited(1));
  EXPECT_EQ(end.first_failure()->process, 1u);
}

TEST(JobEndTest, NamesNoProcessThatHasLeftAndIsASuccess) {
  JobEnd end(all_needed(3), {}, true);
  end.left(1);
  end.ended(1, exited(0));
  end.ended(2, exited(3));
  EXPECT_EQ(end.first_failure()->process, 2u);
}

TEST(JobEndTest, KillsTheRestAWhileAfterAFailure) {
  JobEnd end(all_needed(3));
  EXPECT_EQ(end.ended(2, killed_by(SIGSEGV)), Action::start_grace);
  EXPECT_EQ(end.ended(1, exited(1)), Action::none);
  EXPECT_EQ(end.grace_passed(), Action::kill);
  EXPECT_TRUE(end.is_running(0));
  EXPECT_EQ(end.ended(0, killed_by(SIGKILL)), Action::none);
  EXPECT_TRUE(end.all_ended());
  EXPECT_EQ(end.first_failure()->process, 2u);
  EXPECT_EQ(end.first_failure()->wait_status, killed_by(SIGSEGV));
  EXPECT_EQ(end.exit_status(), exit_status::failure);
}

TEST(JobEndTest, AsksOnceForTheEndWhenTheOutputIsClosed) {
  JobEnd end(all_needed(2));
  EXPECT_EQ(end.output_closed(), Action::ask);
  EXPECT_EQ(end.output_closed(), Action::none) << "each line that cannot be written notices it";
  EXPECT_FALSE(end.killed());
  EXPECT_EQ(end.ended(1, exited(0)), Action::none);
  end.ended(0, exited(0));
  EXPECT_EQ(end.exit_status(), exit_status::output_closed);
}

TEST(JobEndTest, TheUsersInterruptStillCountsAfterTheOutputIsClosed) {
  JobEnd end(all_needed(2));
  end.output_closed();
  EXPECT_EQ(end.interrupted(), Action::ask);
  EXPECT_EQ(end.output_closed(), Action::none);
  EXPECT_EQ(end.interrupted(), Action::kill);
  EXPECT_EQ(end.exit_status(), exit_status::interrupted);
}

TEST(JobEndTest, OutputThatIsClosedAtTheEndIsNothing) {
  JobEnd end(all_needed(2));
  end.ended(0, exited(0));
  EXPECT_EQ(end.output_closed(), Action::none);
  end.ended(1, exited(0));
  EXPECT_EQ(end.exit_status(), exit_status::success);
}

TEST(JobEndTest, KillsTheRestAWhileAfterTheCoordinator) {
  JobEnd end(all_needed(2));
  EXPECT_EQ(end.ended(0, exited(0)), Action::start_grace);
  EXPECT_EQ(end.grace_passed(), Action::kill);
  end.ended(1, killed_by(SIGKILL));
  EXPECT_EQ(end.exit_status(), exit_status::failure);
}

TEST(JobEndTest, AsksFirstAndKillsThen) {
  JobEnd end(all_needed(2));
  EXPECT_EQ(end.interrupted(), Action::ask);
  EXPECT_EQ(end.interrupted(), Action::kill);
  EXPECT_EQ(end.interrupted(), Action::none);
  EXPECT_EQ(end.grace_passed(), Action::none);
  EXPECT_TRUE(end.killed());
  EXPECT_EQ(end.ended(0, killed_by(SIGKILL)), Action::none);
  EXPECT_EQ(end.ended(1, killed_by(SIGKILL)), Action::none);
  EXPECT_EQ(end.exit_status(), exit_status::interrupted);
}

TEST(JobEndTest, IsInterruptedEvenWhenAllEndWell) {
  JobEnd end(all_needed(1));
  end.interrupted();
  end.ended(0, exited(0));
  EXPECT_EQ(end.exit_status(), exit_status::interrupted);
}

TEST(JobEndTest, IsRefusedWhenAProcessRefusedItsInput) {
  JobEnd end(all_needed(3));
  end.ended(1, exited(1));
  end.ended(2, exited(2));
  end.ended(0, exited(1));
  EXPECT_EQ(end.exit_status(), exit_status::refused);
}

JobEnd end_of_programs(std::size_t processes) {
  return JobEnd(all_needed(processes), {}, /*programs=*/true);
}

TEST(JobEndTest, LetsProgramsGoOnAfterACoordinatorThatHasEndedWell) {
  JobEnd end = end_of_programs(3);
  EXPECT_EQ(end.ended(0, exited(0)), Action::none);
  EXPECT_EQ(end.ended(1, exited(0)), Action::none);
  EXPECT_FALSE(end.all_ended());
  EXPECT_EQ(end.ended(2, exited(0)), Action::none);
  EXPECT_EQ(end.exit_status(), exit_status::success);
}

TEST(JobEndTest, GivesProgramsLittleTimeAfterACoordinatorThatHasFailed) {
  JobEnd end = end_of_programs(3);
  EXPECT_EQ(end.ended(0, exited(1)), Action::start_grace);
}

TEST(JobEndTest, GivesProgramsLittleTimeAfterOneThatHasFailed) {
  JobEnd end = end_of_programs(3);
  end.ended(0, exited(0));
  EXPECT_EQ(end.ended(1, exited(3)), Action::start_grace);
  EXPECT_EQ(end.grace_passed(), Action::kill);
}

TEST(JobEndTest, AsksProgramsToEndWhoseCoordinatorHasEnded) {
  JobEnd end = end_of_programs(3);
  end.trains(true);
  end.trains(false);
  end.ended(0, exited(0));
  EXPECT_EQ(end.interrupted(), Action::end_programs);
  EXPECT_EQ(end.ended(1, killed_by(SIGTERM)), Action::none);
  EXPECT_EQ(end.interrupted(), Action::kill);
  EXPECT_EQ(end.ended(2, killed_by(SIGKILL)), Action::none);
  EXPECT_EQ(end.exit_status(), exit_status::interrupted);
}

TEST(JobEndTest, AsksProgramsToEndThatDoNotTrainYet) {
  JobEnd end = end_of_programs(3);
  EXPECT_EQ(end.interrupted(), Action::end_programs);
  EXPECT_TRUE(end.killed());
  EXPECT_EQ(end.ended(0, exited(130)), Action::none);
  EXPECT_EQ(end.grace_passed(), Action::kill);
}

TEST(JobEndTest, GivesProgramsLittleTimeAfterTheRequestedEndOfTheirJob) {
  JobEnd end = end_of_programs(3);
  end.trains(true);
  EXPECT_EQ(end.interrupted(), Action::ask);
  EXPECT_EQ(end.ended(0, exited(0)), Action::start_grace);
}

TEST(JobEndTest, DoesWithoutAProcessThatMayBeLost) {
  JobEnd end({false, true, true, false});
  EXPECT_EQ(end.ended(1, killed_by(SIGKILL)), Action::report_loss);
  EXPECT_EQ(end.ended(2, exited(1)), Action::report_loss);
  EXPECT_EQ(end.ended(3, exited(0)), Action::none);
  EXPECT_EQ(end.ended(0, exited(0)), Action::start_grace);
  EXPECT_FALSE(end.first_failure());
  EXPECT_EQ(end.exit_status(), exit_status::success);
}

TEST(JobEndTest, FailsAsTheCoordinatorSaysWhateverWasLost) {
  JobEnd end({false, true});
  EXPECT_EQ(end.ended(1, exited(1)), Action::report_loss);
  EXPECT_EQ(end.ended(0, exited(1)), Action::start_grace);
  EXPECT_EQ(end.first_failure()->process, 0u);
  EXPECT_EQ(end.exit_status(), exit_status::failure);
}

TEST(JobEndTest, ALossAfterTheCoordinatorIsTheEndOfTheJob) {
  JobEnd end({false, true, true});
  EXPECT_EQ(end.ended(0, exited(0)), Action::start_grace);
  EXPECT_EQ(end.ended(1, exited(1)), Action::none);
  EXPECT_EQ(end.grace_passed(), Action::kill);
  EXPECT_EQ(end.ended(2, killed_by(SIGKILL)), Action::none);
  EXPECT_EQ(end.exit_status(), exit_status::success);
}

TEST(JobEndTest, IsRefusedByAProcessThatMayBeLost) {
  JobEnd end({false, true});
  EXPECT_EQ(end.ended(1, exited(2)), Action::start_grace);
  EXPECT_EQ(end.first_failure()->process, 1u);
  EXPECT_EQ(end.ended(0, exited(2)), Action::none);
  EXPECT_EQ(end.exit_status(), exit_status::refused);
}

TEST(JobEndTest, StartsALostProcessAgainAFewTimes) {
  JobEnd end({false, true, true}, {0, 2, 0});
  for (unsigned restart = 1; restart <= 2; ++restart) {
    EXPECT_EQ(end.ended(1, restart == 1 ? killed_by(SIGKILL) : exited(1)), Action::restart);
    EXPECT_EQ(end.restarted(1), restart);
    EXPECT_FALSE(end.is_running(1));
    EXPECT_FALSE(end.all_ended());
    EXPECT_TRUE(end.start_again(1));
    EXPECT_TRUE(end.is_running(1));
  }
  EXPECT_EQ(end.ended(1, killed_by(SIGKILL)), Action::report_loss) << "no restart is left";
  EXPECT_EQ(end.ended(2, killed_by(SIGKILL)), Action::report_loss) << "it has none";
  EXPECT_EQ(end.ended(0, exited(0)), Action::start_grace);
  EXPECT_EQ(end.exit_status(), exit_status::success);
}

TEST(JobEndTest, StartsNothingAgainWhereTheJobEnds) {
  JobEnd interrupted({false, true}, {0, 3});
  interrupted.interrupted();
  EXPECT_EQ(interrupted.ended(1, killed_by(SIGKILL)), Action::report_loss);
  JobEnd closed({false, true}, {0, 3});
  closed.output_closed();
  EXPECT_EQ(closed.ended(1, killed_by(SIGKILL)), Action::report_loss);
  JobEnd failed({false, true, false}, {0, 3, 0});
  failed.ended(2, exited(1));
  EXPECT_EQ(failed.ended(1, exited(1)), Action::none);
  JobEnd done({false, true}, {0, 3});
  EXPECT_EQ(done.ended(1, exited(0)), Action::none) << "it has done its work";
}

TEST(JobEndTest, AJobThatEndsWaitsForNoDelayedStart) {
  JobEnd end({false, true}, {0, 3});
  EXPECT_EQ(end.ended(1, killed_by(SIGKILL)), Action::restart);
  EXPECT_EQ(end.ended(0, exited(0)), Action::start_grace);
  EXPECT_TRUE(end.all_ended());
  EXPECT_FALSE(end.start_again(1));
  EXPECT_TRUE(end.all_ended());
  EXPECT_EQ(end.exit_status(), exit_status::success);
}

TEST(JobEndTest, AProcessThatIsNeededNoMoreMayBeRefused) {
  JobEnd end({false, true}, {0, 3});
  EXPECT_EQ(end.ended(1, killed_by(SIGKILL)), Action::restart);
  EXPECT_TRUE(end.start_again(1));
  EXPECT_EQ(end.ended(1, exited(2)), Action::none);
  EXPECT_EQ(end.ended(0, exited(0)), Action::start_grace);
  EXPECT_EQ(end.exit_status(), exit_status::success);
}

TEST(JobEndTest, IsRefusedByAProcessAtItsFirstStart) {
  JobEnd end({false, true}, {0, 3});
  EXPECT_EQ(end.ended(1, exited(2)), Action::start_grace);
  end.ended(0, exited(1));
  EXPECT_EQ(end.exit_status(), exit_status::refused);
}

TEST(DescribeEndTest, NamesTheSignalOrTheStatus) {
  EXPECT_EQ(describe_end(killed_by(SIGKILL)), "was killed by signal 9 (Killed)");
  EXPECT_EQ(describe_end(exited(3)), "ended with exit status 3");
}

TEST(JobEndTest, GivesUpACoordinatorThatDoesNotAnswer) {
  JobEnd end(all_needed(2));
  EXPECT_EQ(end.interrupted(), Action::ask);
  EXPECT_TRUE(end.was_interrupted());
  EXPECT_EQ(end.no_answer(), Action::give_up);
  EXPECT_EQ(end.ended(1, killed_by(SIGTERM)), Action::none);
  EXPECT_EQ(end.grace_passed(), Action::kill);
  end.ended(0, killed_by(SIGKILL));
  EXPECT_EQ(end.exit_status(), exit_status::interrupted);
}

TEST(JobEndTest, ASuccessStaysOneThoughAProcessHasToBeKilled) {
  JobEnd end(all_needed(2));
  EXPECT_EQ(end.reported_end(true), Action::start_grace);
  EXPECT_EQ(end.ended(1, exited(0)), Action::none);
  EXPECT_EQ(end.grace_passed(), Action::kill);
  EXPECT_EQ(end.ended(0, killed_by(SIGKILL)), Action::none);
  EXPECT_TRUE(end.all_ended());
  EXPECT_EQ(end.exit_status(), exit_status::success);
  EXPECT_FALSE(end.first_failure());
}

TEST(JobEndTest, ASuccessStaysOneThoughTheUserRequestsTheEndAfterIt) {
  JobEnd end(all_needed(2));
  EXPECT_EQ(end.reported_end(true), Action::start_grace);
  EXPECT_FALSE(end.is_urgent());
  EXPECT_EQ(end.interrupted(), Action::start_grace) << "a shorter one";
  EXPECT_TRUE(end.is_urgent());
  EXPECT_EQ(end.ended(1, exited(0)), Action::none);
  EXPECT_EQ(end.interrupted(), Action::kill);
  EXPECT_EQ(end.ended(0, killed_by(SIGKILL)), Action::none);
  EXPECT_EQ(end.exit_status(), exit_status::success);
  EXPECT_FALSE(end.first_failure());
}

TEST(JobEndTest, ARequestBeforeTheEndCountsThoughTheJobThenReportsIt) {
  JobEnd end(all_needed(1));
  EXPECT_EQ(end.interrupted(), Action::ask);
  EXPECT_EQ(end.reported_end(true), Action::start_grace);
  EXPECT_EQ(end.interrupted(), Action::kill);
  end.ended(0, killed_by(SIGKILL));
  EXPECT_EQ(end.exit_status(), exit_status::interrupted);
}

TEST(JobEndTest, AFailureStaysOneWhenTheCoordinatorHasToBeKilled) {
  JobEnd end(all_needed(1));
  EXPECT_EQ(end.reported_end(false), Action::start_grace);
  EXPECT_EQ(end.reported_end(false), Action::none);
  EXPECT_EQ(end.grace_passed(), Action::kill);
  end.ended(0, killed_by(SIGKILL));
  EXPECT_EQ(end.exit_status(), exit_status::failure);
}

TEST(JobEndTest, NeedsNoAnswerOfACoordinatorThatHasEnded) {
  JobEnd end(all_needed(2));
  end.interrupted();
  EXPECT_EQ(end.ended(0, exited(0)), Action::start_grace);
  EXPECT_EQ(end.no_answer(), Action::none);
}

}  // namespace
}  // namespace syncopate
