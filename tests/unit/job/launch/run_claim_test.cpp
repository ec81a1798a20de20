// Goal:   each run has its own folder with the configuration that repeats the run. The folder is
//         removed when the run never began.
// Method: claims in a temporary folder.
#include "job/launch/run_claim.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/errors.hpp"
#include "job/spec/config_file.hpp"

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

TEST_F(RunClaimTest, RefusesAFolderThatHoldsARunAndLeavesItAlone) {
  RunClaim(request(true)).keep();
  EXPECT_THROW(RunClaim{request(true)}, ConfigError);
  EXPECT_TRUE(fs::exists(root_ / "runs" / "one" / "config.toml"));
}

TEST_F(RunClaimTest, KeepsTheFolderOfARunThatIsResumed) {
  RunClaim(request(true)).keep();
  JobRequest resumed = request(true);
  resumed.resumed = true;
  resumed.config.epochs = 9;
  { RunClaim claim(resumed); }
  EXPECT_EQ(read_config(root_ / "runs" / "one" / "config.toml").epochs, 9);
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

/// This process works in a folder while this lives.
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
