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

}  // namespace
}  // namespace syncopate
