// Goal:   a cluster file is read as docs/guides/clusters.md describes it. Every mistake is refused
//         with one line that begins with file:line:column. The files in clusters/ have the figures
//         of the comparison tables.
// Method: small valid texts, and texts with one mistake each; the files in clusters/ are compared
//         with known figures.

#include "device/cluster_file.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

/// Gives each test its own cluster file.
class ClusterFileTest : public testing::Test {
 protected:
  ~ClusterFileTest() override { std::filesystem::remove(path_); }

  ClusterFile read(const std::string& text) const {
    std::ofstream(path_) << text;
    return read_cluster_file(path_);
  }

  /// Returns the error for `text` without the path before ":line:column: ".
  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const ConfigError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_THAT(message, testing::StartsWith(path_.string() + ":"));
      return message.substr(path_.string().size() + 1);
    }
    ADD_FAILURE() << "read without complaint:\n" << text;
    return "";
  }

  std::filesystem::path path_ =
      testing::TempDir() + "/cluster-" + std::to_string(::getpid()) + ".toml";
};

TEST_F(ClusterFileTest, ReadsEverything) {
  const ClusterFile cluster = read(R"(
    name = "lab"
    batch_samples = 32
    [[devices]]
    name = "fast"
    count = 2
    seconds_per_batch = 0.02
    jitter = 0.05
    batch_size = 128
    [[devices]]
    name = "slow"
    samples_per_second = 64
    batch_samples = 16
    seconds_per_step = 0.05
    [pauses]
    every = 60
    lasting = 30.0
    [link]
    bandwidth = 1e9
    latency = 1e-3
  )");
  EXPECT_EQ(cluster.name, "lab");
  ASSERT_EQ(cluster.devices.size(), 3U);
  for (const DeviceProfile& fast : {cluster.devices[0], cluster.devices[1]}) {
    EXPECT_EQ(fast.name, "fast");
    EXPECT_EQ(fast.batch_time, milliseconds(20));
    EXPECT_EQ(fast.batch_samples, 32U);
    EXPECT_EQ(fast.jitter, 0.05);
    EXPECT_EQ(fast.batch_size, 128U);
  }
  const DeviceProfile& slow = cluster.devices[2];
  EXPECT_EQ(slow.name, "slow");
  EXPECT_EQ(slow.batch_time, milliseconds(250));
  EXPECT_EQ(slow.batch_samples, 16U) << "its own";
  EXPECT_EQ(slow.step_overhead, milliseconds(50));
  EXPECT_EQ(slow.jitter, 0);
  EXPECT_EQ(slow.batch_size, std::nullopt);
  ASSERT_TRUE(cluster.pauses);
  EXPECT_EQ(cluster.pauses->every, seconds(60));
  EXPECT_EQ(cluster.pauses->lasting, seconds(30));
  EXPECT_EQ(cluster.link.bandwidth, 1e9);
  EXPECT_EQ(cluster.link.latency, milliseconds(1));
}

TEST_F(ClusterFileTest, FillsInDefaults) {
  const ClusterFile cluster = read(R"(
    [[devices]]
    seconds_per_batch = 1
    count = 2
    [[devices]]
    seconds_per_batch = 2
  )");
  EXPECT_EQ(cluster.name, path_.stem().string());
  ASSERT_EQ(cluster.devices.size(), 3U);
  EXPECT_EQ(cluster.devices[0].name, "device-0");
  EXPECT_EQ(cluster.devices[2].name, "device-2");
  EXPECT_EQ(cluster.devices[0].batch_samples, 64U);
  EXPECT_FALSE(cluster.pauses);
  EXPECT_EQ(cluster.link.bandwidth, LinkProfile{}.bandwidth);
  EXPECT_EQ(cluster.link.latency, LinkProfile{}.latency);
}

TEST_F(ClusterFileTest, PlacesAnUnknownKeyAndSuggestsTheNearest) {
  EXPECT_EQ(refusal("[[devices]]\nseconds_per_batch = 1\n  jiter = 0.1\n"),
            "3:3: unknown key 'jiter' in [[devices]]; did you mean 'jitter'?");
  EXPECT_EQ(refusal("batch_sample = 3\n"),
            "1:1: unknown key 'batch_sample' in a cluster file; did you mean 'batch_samples'?");
  EXPECT_THAT(refusal("[[devices]]\nseconds_per_batch = 1\n[pauses]\nlength = 1\n"),
              HasSubstr("unknown key 'length' in [pauses]"));
  EXPECT_THAT(refusal("[[devices]]\nseconds_per_batch = 1\n[link]\nlatancy = 1\n"),
              HasSubstr("did you mean 'latency'?"));
}

TEST_F(ClusterFileTest, RefusesAContradictoryOrMissingTime) {
  EXPECT_EQ(refusal("name = 'x'\n[[devices]]\nname = 'd'\n"),
            "2:1: expected seconds_per_batch or samples_per_second, found neither");
  EXPECT_EQ(refusal("[[devices]]\nseconds_per_batch = 0.5\nseconds_per_step = 0.5\n"),
            "1:1: seconds_per_step: expected less than the 0.5 s of a batch, of which it is the "
            "part that does not grow with the samples, found 0.5");
  EXPECT_EQ(refusal("[[devices]]\nseconds_per_batch = 1\nsamples_per_second = 64\n"),
            "1:1: expected seconds_per_batch or samples_per_second, found both");
}

TEST_F(ClusterFileTest, RefusesValuesOutOfRange) {
  const auto device = [&](const std::string& line) { return refusal("[[devices]]\n" + line); };
  EXPECT_EQ(device("seconds_per_batch = 0"),
            "2:21: seconds_per_batch: expected a number from 1e-06 to 86400, found 0");
  EXPECT_THAT(device("seconds_per_batch = -0.5"), HasSubstr("found -0.5"));
  EXPECT_THAT(device("seconds_per_batch = nan"), HasSubstr("found nan"));
  EXPECT_THAT(device("seconds_per_batch = inf"), HasSubstr("found inf"));
  EXPECT_THAT(device("samples_per_second = 0"), HasSubstr("samples_per_second: expected"));
  const std::string sound = "seconds_per_batch = 1\n";
  EXPECT_EQ(device(sound + "count = 0"),
            "3:9: count: expected a whole number from 1 to 1024, found 0");
  EXPECT_THAT(device(sound + "count = -3"), HasSubstr("found -3"));
  EXPECT_THAT(device(sound + "jitter = 1"), HasSubstr("jitter: expected a number from 0 to 0.99"));
  EXPECT_THAT(device(sound + "jitter = -0.1"), HasSubstr("found -0.1"));
  EXPECT_THAT(device(sound + "batch_size = 0"), HasSubstr("batch_size: expected a whole number"));
  EXPECT_THAT(refusal("batch_samples = 0\n"), HasSubstr("batch_samples: expected a whole number"));
}

TEST_F(ClusterFileTest, RefusesTimesThatNoDeviceTakes) {
  const auto device = [&](const std::string& line) { return refusal("[[devices]]\n" + line); };
  EXPECT_THAT(device("samples_per_second = 1e-3"),
              HasSubstr("expected a number from 0.01 to 1e+09, found 0.001"));
  EXPECT_EQ(refusal("batch_samples = 1000000\n[[devices]]\nsamples_per_second = 2\n"),
            "2:1: expected 1e-06 to 86400 s for a batch of 1000000 samples, found 5e+05 s; change "
            "samples_per_second = 2");
  EXPECT_THAT(device("samples_per_second = 1e9"), HasSubstr("found 6.4e-08 s"));
  EXPECT_THAT(device("seconds_per_batch = 1e300"), HasSubstr("found 1e+300"));
  EXPECT_THAT(device("seconds_per_batch = 1\nbatch_size = 4294967295"),
              HasSubstr("from 1 to 1048576, found 4294967295"));
  const std::string sound = "[[devices]]\nseconds_per_batch = 1\n";
  EXPECT_THAT(refusal(sound + "[pauses]\nevery = 1e-6\nlasting = 1e-7\n"),
              HasSubstr("every: expected a number from 0.01 to 86400"));
  EXPECT_THAT(refusal(sound + "[link]\nbandwidth = 1\n"), HasSubstr("from 1000 to 1e+15"));
}

TEST_F(ClusterFileTest, RefusesMoreDevicesThanAJobHasWorkers) {
  const std::string many = "[[devices]]\nseconds_per_batch = 1\ncount = 1024\n";
  EXPECT_EQ(read(many).devices.size(), 1024U);
  EXPECT_EQ(refusal(many + "[[devices]]\nseconds_per_batch = 1\n"),
            "4:1: expected at most 1024 devices in a cluster, found 1025 up to here");
}

TEST_F(ClusterFileTest, RefusesAFileThatIsTooLong) {
  EXPECT_THROW(read_cluster_file("/dev/zero"), DataError);
}

TEST_F(ClusterFileTest, RefusesWrongTypes) {
  const auto device = [&](const std::string& line) { return refusal("[[devices]]\n" + line); };
  EXPECT_EQ(device("seconds_per_batch = 'fast'"),
            "2:21: seconds_per_batch: expected a number, found string");
  EXPECT_THAT(device("name = 3"), HasSubstr("name: expected a string, found integer"));
  EXPECT_THAT(device("seconds_per_batch = 1\ncount = 2.0"),
              HasSubstr("count: expected a whole number, found floating-point"));
  EXPECT_THAT(refusal("devices = 3"), HasSubstr("expected tables, [[devices]], found integer"));
  EXPECT_THAT(refusal("devices = [1, 2]"),
              HasSubstr("expected tables, [[devices]], found integer"));
  EXPECT_THAT(refusal("[devices]\nseconds_per_batch = 1"), HasSubstr("found table"));
  EXPECT_THAT(refusal("pauses = 1\n[[devices]]\nseconds_per_batch = 1"),
              HasSubstr("pauses: expected a table, [pauses], found integer"));
}

TEST_F(ClusterFileTest, RefusesOutagesThatNeverEnd) {
  const auto pauses = [&](const std::string& lines) {
    return refusal("[[devices]]\nseconds_per_batch = 1\n[pauses]\n" + lines);
  };
  EXPECT_EQ(pauses("every = 30.0\nlasting = 30.0"),
            "3:1: expected outages shorter than every = 30, found lasting = 30");
  EXPECT_EQ(pauses("every = 30.0"), "3:1: expected lasting in [pauses], found none");
  EXPECT_EQ(pauses("lasting = 30.0"), "3:1: expected every in [pauses], found none");
  EXPECT_THAT(pauses("every = 0\nlasting = 1"), HasSubstr("every: expected a number"));
}

TEST_F(ClusterFileTest, RefusesAClusterWithoutDevices) {
  EXPECT_EQ(refusal(""), "1:1: expected at least one [[devices]], found none");
  EXPECT_THAT(refusal("devices = []"), HasSubstr("found none"));
}

TEST_F(ClusterFileTest, PlacesWhatIsNotToml) {
  EXPECT_THAT(refusal("name = \"x\"\n[[devices]\n"), testing::StartsWith("2:"));
}

TEST_F(ClusterFileTest, SaysThatAFileIsMissing) {
  EXPECT_THROW(read_cluster_file(path_.parent_path() / "no-such-cluster.toml"), DataError);
}

/// Reads a cluster file of the project from the source tree.
ClusterFile kept(const std::string& name) {
  const auto tree = std::filesystem::path(SYNCOPATE_SOURCE_TREE);
  return read_cluster_file(tree / "clusters" / (name + ".toml"));
}

std::vector<double> batch_seconds(const ClusterFile& cluster) {
  std::vector<double> times;
  for (const DeviceProfile& device : cluster.devices) {
    EXPECT_EQ(device.batch_samples, 64U);
    times.push_back(to_seconds(device.batch_time));
  }
  return times;
}

TEST(KeptClusters, AreWhatTheTablesSay) {
  using Times = std::vector<double>;
  EXPECT_EQ(batch_seconds(kept("paper")), (Times{0.03, 0.03, 0.03, 0.03, 3.5, 3.5}));
  EXPECT_EQ(batch_seconds(kept("mixed")), (Times{0.02, 0.02, 0.04, 0.08}));
  EXPECT_EQ(batch_seconds(kept("ratio-1")), Times(5, 0.03));
  EXPECT_EQ(batch_seconds(kept("ratio-2")), (Times{0.03, 0.03, 0.03, 0.03, 0.06}));
  EXPECT_EQ(batch_seconds(kept("ratio-4")), (Times{0.03, 0.03, 0.03, 0.03, 0.12}));
  EXPECT_EQ(batch_seconds(kept("ratio-16")), (Times{0.03, 0.03, 0.03, 0.03, 0.48}));
  EXPECT_EQ(batch_seconds(kept("ratio-64")), (Times{0.03, 0.03, 0.03, 0.03, 1.92}));
  EXPECT_EQ(batch_seconds(kept("spot")), Times(8, 0.05));
}

TEST(KeptClusters, JitterAndDieAsTheirNamesSay) {
  for (const DeviceProfile& device : kept("mixed").devices) {
    EXPECT_EQ(device.jitter, 0.05);
  }
  const ClusterFile spot = kept("spot");
  ASSERT_TRUE(spot.pauses);
  EXPECT_EQ(spot.pauses->every, seconds(60));
  EXPECT_EQ(spot.pauses->lasting, seconds(30));
}

TEST(KeptClusters, NeedAboutOneCoreOfLeNet) {
  for (const char* name :
       {"paper", "mixed", "ratio-1", "ratio-2", "ratio-4", "ratio-16", "ratio-64", "spot"}) {
    SCOPED_TRACE(name);
    const ClusterFile cluster = kept(name);
    EXPECT_EQ(cluster.name, name);
    double speed = 0;
    for (const DeviceProfile& device : cluster.devices) {
      speed += device.samples_per_second();
    }
    EXPECT_LE(speed, 11'000);
    EXPECT_GE(speed, 8'000);
  }
}

}  // namespace
}  // namespace syncopate
