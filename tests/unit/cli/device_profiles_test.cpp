// Goal:   `syncopate profile` reads its options and writes a cluster file with the measured
//         devices; it changes no other file.
// Method: whole command lines through `run_cli`; files read back as cluster files; closed values.
#include "cli/bench/device_profiles.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "cli/handlers.hpp"
#include "device/cluster_file.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate::cli {
namespace {

using testing::HasSubstr;

const std::vector<ProfiledDevice> measured{
    {.name = "host-cpu",
     .count = 4,
     .samples_per_second = 1000,
     .jitter = 0.125,
     .seconds_per_step = 0.016},
    {.name = "host-cuda-0", .count = 1, .samples_per_second = 64000, .jitter = 0}};

class DeviceProfilesTest : public testing::Test {
 protected:
  DeviceProfilesTest() { std::filesystem::create_directories(folder_); }

  ~DeviceProfilesTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("profiles-{}", getpid());
  ProfileCommand command_{.out = folder_ / "mine.toml"};
};

TEST_F(DeviceProfilesTest, WritesAClusterFile) {
  write_profiles(command_, measured);
  const ClusterFile cluster = read_cluster_file(command_.out);
  EXPECT_EQ(cluster.name, "mine");
  ASSERT_EQ(cluster.devices.size(), 5);
  EXPECT_EQ(cluster.devices[3].name, "host-cpu");
  EXPECT_EQ(cluster.devices[3].jitter, 0.125);
  EXPECT_NEAR(cluster.devices[3].step_seconds(64), 0.064, 1e-6);
  EXPECT_NEAR(cluster.devices[3].step_seconds(16), 0.016 + 0.048 / 4, 1e-6);
  EXPECT_EQ(cluster.devices[4].name, "host-cuda-0");
  EXPECT_NEAR(cluster.devices[4].samples_per_second(), 64000, 1);
}

TEST_F(DeviceProfilesTest, APartOfAStepsTimeDoesNotGrowWithItsSamples) {
  EXPECT_NEAR(seconds_per_step(0.1, 0.025), 0, 1e-12) << "in proportion";
  EXPECT_NEAR(seconds_per_step(0.1, 0.04), 0.02, 1e-12) << "0.02 + 0.08 / 4";
  EXPECT_NEAR(seconds_per_step(0.1, 0.02), 0, 1e-12) << "measured inexactly";
  EXPECT_NEAR(seconds_per_step(0.1, 0.1), 0.09, 1e-12) << "all of it, as it seems";
}

TEST_F(DeviceProfilesTest, AddsToTheDevicesThatAreThere) {
  write_file(command_.out,
             "name = \"ours\"\n[[devices]]\nname = \"old\"\nsamples_per_second = 5\n");
  EXPECT_THAT(syncopate::refusal([&] { write_profiles(command_, measured); }),
              HasSubstr("mine.toml exists"));
  command_.add = true;
  write_profiles(command_, measured);
  const ClusterFile cluster = read_cluster_file(command_.out);
  EXPECT_EQ(cluster.name, "ours");
  EXPECT_EQ(cluster.devices.size(), 6);
  EXPECT_EQ(cluster.devices[0].name, "old");
  const std::string before = read_file(command_.out);
  EXPECT_THAT(syncopate::refusal([&] { write_profiles(command_, measured); }),
              HasSubstr("has a device host-cpu already"));
  EXPECT_EQ(read_file(command_.out), before);
}

TEST_F(DeviceProfilesTest, LeavesAFileThatIsNoClusterFile) {
  write_file(command_.out, "hello");
  command_.add = true;
  EXPECT_THAT(syncopate::refusal([&] { write_profiles(command_, measured); }),
              HasSubstr("mine.toml:1"));
  EXPECT_EQ(read_file(command_.out), "hello");
}

TEST_F(DeviceProfilesTest, LeavesAFileThatTheDevicesDoNotFitInto) {
  command_.add = true;
  for (const std::string before :
       {"devices = [{ name = \"a\", samples_per_second = 100.0 }]\n",
        "[[devices]]\nname = \"a\"\ncount = 1022\nsamples_per_second = 100.0\n"}) {
    write_file(command_.out, before);
    EXPECT_THAT(syncopate::refusal([&] { write_profiles(command_, measured); }),
                HasSubstr("mine.toml:"));
    EXPECT_EQ(read_file(command_.out), before);
  }
  const ProfileCommand folder{.out = folder_, .add = true};
  EXPECT_THAT(syncopate::refusal([&] { write_profiles(folder, measured); }),
              HasSubstr("is no regular file"));
}

TEST_F(DeviceProfilesTest, ChangesTheFileThatALinkNames) {
  const std::filesystem::path real = folder_ / "real.toml";
  write_profiles({.out = real}, {measured[0]});
  std::filesystem::permissions(
      real, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink("real.toml", command_.out);
  command_.add = true;
  write_profiles(command_, {measured[1]});
  EXPECT_TRUE(std::filesystem::is_symlink(command_.out));
  EXPECT_EQ(read_cluster_file(real).devices.size(), 5);
  EXPECT_EQ(std::filesystem::status(real).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(DeviceProfilesTest, ANameHoldsNothingThatTomlReads) {
  EXPECT_EQ(profile_name("a\"b c", "cuda:0"), "a-b-c-cuda-0");
  write_profiles(command_, {{.name = "slow", .samples_per_second = 0.04}});
  EXPECT_NEAR(read_cluster_file(command_.out).devices[0].samples_per_second(), 0.04, 1e-4);
}

TEST_F(DeviceProfilesTest, TheSlowestPercentIsNoJitter) {
  EXPECT_EQ(jitter_of({}), 0);
  EXPECT_EQ(jitter_of({0.5}), 0);
  EXPECT_NEAR(jitter_of({1, 3}), 0.5, 1e-12);
  std::vector<double> seconds(100, 1.0);
  seconds[17] = 1000;
  EXPECT_EQ(jitter_of(seconds), 0);
  EXPECT_EQ(jitter_of({1e-9, 1e-9, 1e-9, 1e9}), 0.99);
}

TEST_F(DeviceProfilesTest, ReadsItsOptions) {
  ProfileCommand seen;
  Handlers handlers{};
  handlers.profile = [&](const ProfileCommand& command) {
    seen = command;
    return 0;
  };
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"syncopate", "profile"});
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    testing::internal::CaptureStderr();
    const int status = run_cli(static_cast<int>(words.size()), argv.data(), handlers);
    return std::pair(status, testing::internal::GetCapturedStderr());
  };
  EXPECT_EQ(run({"--network", "resnet18-v1", "--batch-size", "8", "--threads", "2", "--image-size",
                 "32", "--seconds", "0.5", "--out", "x.toml", "--add"}),
            std::pair(0, std::string()));
  EXPECT_EQ(seen.network, "resnet18-v1");
  EXPECT_EQ(seen.batch_size, 8);
  EXPECT_EQ(seen.threads, 2);
  EXPECT_EQ(seen.image_size, 32);
  EXPECT_EQ(seen.effort.seconds, 0.5);
  EXPECT_EQ(seen.out, "x.toml");
  EXPECT_TRUE(seen.add);
  EXPECT_THAT(run({"--network", "lenet"}).second, HasSubstr("did you mean 'lenet5'?"));
  EXPECT_THAT(run({"--threads", "0"}).second, HasSubstr("--threads: expected a whole number"));
  EXPECT_THAT(run({"--add"}).second, HasSubstr("--add needs --out"));
  EXPECT_EQ(run({"--seconds", "-1"}).first, 2);
}

}  // namespace
}  // namespace syncopate::cli
