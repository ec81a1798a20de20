// Goal:   each run has its own folder with the configuration that repeats the run. The folder is
//         removed if the run never began. Only one job at a time writes to it.
// Method: claims in a temporary folder; processes that hold its lock.
#include "job/launch/run_claim.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "job/launch/descriptor.hpp"
#include "job/launch/environment.hpp"
#include "report/run_folder.hpp"
#include "spec/config_file.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

class RunClaimTest : public testing::Test {
 protected:
  RunClaimTest() {
    std::string name = (fs::temp_directory_path() / "run_claim_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~RunClaimTest() override { fs::remove_all(root_); }

  JobRequest request(bool named) const {
    JobRequest request;
    request.named_run_dir = named;
    request.config.seed = 7;
    request.config.run_dir = root_ / "runs" / "one";
    return request;
  }

  fs::path root_;
};

TEST_F(RunClaimTest, HoldsAConfigurationThatRunsAgainElsewhere) {
  RunClaim claim(request(false));
  const TrainConfig& config = claim.request().config;
  const TrainConfig again = read_config(config.run_dir / "config.toml");
  EXPECT_EQ(again.seed, 7u);
  EXPECT_EQ(again.run_dir, "");
}

TEST_F(RunClaimTest, GivesTwoRunsOfOneSecondAFolderEach) {
  RunClaim first(request(false));
  RunClaim second(request(false));
  EXPECT_EQ(first.request().config.run_dir, root_ / "runs" / "one");
  EXPECT_EQ(second.request().config.run_dir, root_ / "runs" / "one-2");
}

TEST_F(RunClaimTest, LeavesNothingOfARunThatNeverBegan) {
  { RunClaim claim(request(true)); }
  EXPECT_FALSE(fs::exists(root_ / "runs" / "one"));
  fs::create_directories(root_ / "runs" / "one");
  { RunClaim claim(request(true)); }
  EXPECT_TRUE(fs::is_empty(root_ / "runs" / "one"));
}

TEST_F(RunClaimTest, SaysWhyItCannotMakeItsFolder) {
  fs::create_symlink("loop", root_ / "loop");
  for (const char* name : {"loop", "loop/run"}) {
    JobRequest circular = request(true);
    circular.config.run_dir = root_ / name;
    try {
      const RunClaim claim(circular);
      ADD_FAILURE() << "the links lead in a circle";
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), fmt::format("cannot make the run folder {}: Too many levels of "
                                          "symbolic links; choose another one by --run-dir, or "
                                          "start in a folder that you may write to",
                                          circular.config.run_dir.string()));
    }
  }
}

TEST_F(RunClaimTest, RefusesAFolderThatHoldsARunAndLeavesItAlone) {
  RunClaim(request(true)).keep();
  EXPECT_THROW(RunClaim{request(true)}, ConfigError);
  EXPECT_TRUE(fs::exists(root_ / "runs" / "one" / "config.toml"));
  EXPECT_FALSE(fs::exists(root_ / "runs" / "one" / "run.lock"));
}

TEST_F(RunClaimTest, LocksAFileThatOnlyItsOwnerMayRead) {
  const fs::path lock = root_ / "runs" / "one" / "run.lock";
  const RunClaim claim(request(true));
  EXPECT_EQ(fs::status(lock).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(RunClaimTest, FollowsNoLinkAtTheNameOfItsLock) {
  const fs::path folder = root_ / "runs" / "one";
  fs::create_directories(folder);
  fs::create_symlink(root_ / "elsewhere", folder / "run.lock");
  EXPECT_THROW(RunClaim{request(true)}, DataError);
  EXPECT_FALSE(fs::exists(root_ / "elsewhere"));
}

TEST_F(RunClaimTest, TakesNoFolderOfAnotherUserWithLinks) {
  const fs::path folder = root_ / "runs" / "one";
  fs::create_directories(folder / "workers");
  fs::create_symlink(root_ / "elsewhere", folder / "workers" / "0.jsonl");
  RunClaim(request(true)).keep();  // accepts links in a folder of this user
  fs::remove(folder / "config.toml");
  if (::chown(folder.c_str(), 65534, 65534) != 0) {
    GTEST_SKIP() << "this user cannot give a folder away";
  }
  try {
    const RunClaim claim(request(true));
    ADD_FAILURE() << "the links may lead anywhere";
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()),
              fmt::format("{}: expected no link in a run folder of another user (number 65534), "
                          "found one; choose another --run-dir",
                          (folder / "workers" / "0.jsonl").string()));
  }
}

TEST_F(RunClaimTest, SaysThatTheWriterOfAFolderHasEnded) {
  const fs::path folder = root_ / "runs" / "one";
  fs::create_directories(folder);
  const pid_t dead = ::fork();
  if (dead == 0) {
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  write_file(folder / "run.lock", fmt::format("{} {}\n", dead, host_name()));
  const Descriptor held(::open((folder / "run.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  try {
    const RunClaim claim(request(true));
    ADD_FAILURE() << "the folder is held";
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with(fmt::format("{} is in use: process {}, which wrote it, has ended, "
                                             "but another one holds its file "
                                             "run.lock; end that one",
                                             folder.string(), dead)))
        << error.what();
  }
}

/// Resumes a run to 9 epochs. The run goes on from round 4, or its claim ends before that; with
/// `keeps` it has begun.
class ResumedClaimTest : public RunClaimTest {
 protected:
  ResumedClaimTest() {
    RunClaim(request(true)).keep();
    write_file(folder_.evaluations(), evaluations);
    write_file(folder_.summary(), "{}");
  }

  void resume(bool goes_on, bool keeps) const {
    JobRequest resumed = request(true);
    resumed.resumed = true;
    resumed.config.epochs = 9;
    RunClaim claim(resumed);
    if (goes_on) {
      claim.go_on_from(folder_.checkpoints() / "round-0000000004.safetensors", 4);
    }
    if (keeps) {
      claim.keep();
    }
  }

  static constexpr const char* evaluations = "{\"round\":4}\n{\"round\":5}\n";
  const RunFolder folder_{root_ / "runs" / "one"};
};

TEST_F(ResumedClaimTest, LeavesARunAsItWasUntilNothingIsRefused) {
  for (const bool goes_on : {false, true}) {
    resume(goes_on, /*keeps=*/false);
    EXPECT_EQ(read_config(folder_.config()).epochs, request(true).config.epochs);
    EXPECT_EQ(read_file(folder_.evaluations()), evaluations);
    EXPECT_EQ(read_file(folder_.summary()), "{}");
  }
}

TEST_F(ResumedClaimTest, DropsWhatTheResumedRunWritesAgain) {
  resume(/*goes_on=*/true, /*keeps=*/true);
  EXPECT_EQ(read_config(folder_.config()).epochs, 9);
  EXPECT_EQ(read_file(folder_.evaluations()), "{\"round\":4}\n");
  EXPECT_FALSE(fs::exists(folder_.summary())) << "the session before has ended, this one has not";
}

TEST_F(RunClaimTest, RefusesAFolderThatAnotherJobWrites) {
  const RunClaim first(request(true));
  JobRequest resumed = request(true);
  resumed.resumed = true;
  for (const JobRequest& second : {request(true), resumed}) {
    try {
      const RunClaim claim(second);
      FAIL() << "two jobs write one folder";
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()),
                fmt::format("{} is in use: a job writes it, process {} on {}; wait until it has "
                            "ended, or choose another --run-dir",
                            (root_ / "runs" / "one").string(), ::getpid(), host_name()));
    }
  }
  EXPECT_TRUE(fs::exists(root_ / "runs" / "one" / "config.toml")) << "the first job's";
}

/// After `kill -9` of the process that has started a job, a child may still hold the lock for a
/// short time.
TEST_F(RunClaimTest, WaitsForTheLastProcessOfAJobThatWasKilled) {
  RunClaim(request(true)).keep();
  const pid_t first = ::fork();
  if (first == 0) {
    const RunLock lock(root_ / "runs" / "one");
    const pid_t parent = ::getpid();
    if (::fork() == 0) {
      while (::getppid() == parent) {
        ::poll(nullptr, 0, 1);
      }
      ::poll(nullptr, 0, 100);  // long enough for the claim below to find it
    }
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(first, nullptr, 0), first);
  JobRequest resumed = request(true);
  resumed.resumed = true;
  EXPECT_NO_THROW(RunClaim{resumed});
}

TEST_F(RunClaimTest, RemovesWhatAKilledJobHasLeft) {
  RunClaim(request(true)).keep();
  const fs::path run = root_ / "runs" / "one";
  const fs::path leftover = run / "checkpoints" / "round-0000000002.safetensors.4711.tmp";
  write_file(leftover, "half");
  write_file(run / "config.toml.4711.tmp", "half");
  write_file(run / "checkpoints" / "round-0000000001.safetensors", "");
  JobRequest resumed = request(true);
  resumed.resumed = true;
  const RunClaim claim(resumed);
  EXPECT_FALSE(fs::exists(leftover));
  EXPECT_FALSE(fs::exists(run / "config.toml.4711.tmp"));
  EXPECT_TRUE(fs::exists(run / "checkpoints" / "round-0000000001.safetensors"));
}

TEST_F(RunClaimTest, RefusesAFolderThatCannotBeMade) {
  JobRequest blocked = request(false);
  blocked.config.run_dir = "/proc/no/such";
  EXPECT_THROW(RunClaim{blocked}, DataError);
}

JoinRequest joiner(Role role) {
  JoinRequest request;
  request.role = role;
  return request;
}

/// Changes the working directory of this process until the end of the scope.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
  }
  ~WorkingFolder() { fs::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  fs::path before_;
};

TEST_F(RunClaimTest, AJoinerTakesANewFolderBelowItsOwnRunsAndNeverTheCoordinators) {
  const WorkingFolder here(root_);
  for (const fs::path& foreign :
       {root_ / "home", root_ / "runs" / "an-old-run", root_ / "runs" / "..", fs::path()}) {
    TrainConfig job;
    job.scheme = "asgd";
    job.run_dir = foreign;
    const fs::path own = own_run_dir(job, joiner(Role::worker), Rank{1});
    EXPECT_EQ(own.parent_path(), fs::current_path() / "runs");
    EXPECT_THAT(own.filename().string(), testing::MatchesRegex("[0-9]+-[0-9]+-asgd-worker-1.*"));
    EXPECT_TRUE(fs::is_empty(own));
  }
  EXPECT_FALSE(fs::exists(root_ / "home"));
  TrainConfig job;
  job.scheme = "asgd";
  EXPECT_THAT(own_run_dir(job, joiner(Role::server), Rank{0}).filename().string(),
              testing::HasSubstr("-asgd-server-0"));
}

TEST_F(RunClaimTest, ARankOfALauncherSharesTheFolderThatRankZeroMadeInRuns) {
  const WorkingFolder here(root_);
  JoinRequest request = joiner(Role::worker);
  request.launched = true;
  TrainConfig job;
  job.scheme = "ssgd";
  job.run_dir = fs::current_path() / "runs" / "20260131-235959-ssgd-mlp";
  EXPECT_EQ(own_run_dir(job, request, Rank{1}), job.run_dir);
  for (const fs::path& foreign :
       {fs::current_path() / "home", fs::current_path() / "runs" / ".." / "home",
        fs::current_path() / "runs" / ".."}) {
    job.run_dir = foreign;
    EXPECT_EQ(own_run_dir(job, request, Rank{1}).parent_path(), fs::current_path() / "runs");
  }
}

}  // namespace
}  // namespace syncopate
