// Goal:   the cores of a process are those that it may use, not those that the host has.
// Method: affinities that the test sets; folders laid out as those of cgroups of both versions.

#include "base/cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <vector>

#include "base/file.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

/// The cores that this process may use, by number.
std::vector<int> own_affinity() {
  cpu_set_t own;
  EXPECT_EQ(::sched_getaffinity(0, sizeof(own), &own), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &own)) {
      cores.push_back(core);
    }
  }
  return cores;
}

void bind_to(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    CPU_SET(core, &set);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(set), &set), 0);
}

/// A process that is bound to one core until the test ends it.
class BoundProcess {
 public:
  explicit BoundProcess(int core) {
    std::array<int, 2> bound{};
    EXPECT_EQ(::pipe(bound.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      bind_to({core});
      EXPECT_EQ(::write(bound[1], "", 1), 1);
      for (;;) {
        ::pause();
      }
    }
    ::close(bound[1]);  // so that the read ends if the process does
    char byte = 0;
    EXPECT_EQ(::read(bound[0], &byte, 1), 1);
    ::close(bound[0]);
  }
  ~BoundProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  BoundProcess(const BoundProcess&) = delete;
  BoundProcess& operator=(const BoundProcess&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(AvailableCores, FollowTheAffinityOfTheProcess) {
  const std::vector<int> all = own_affinity();
  bind_to({all.front()});
  EXPECT_EQ(available_cores(), 1U);
  bind_to(all);
  EXPECT_LE(available_cores(), all.size());
}

TEST(AvailableCores, OfSeveralProcessesAreCountedOnce) {
  const std::vector<int> all = own_affinity();
  const BoundProcess one(all.front());
  const BoundProcess same(all.front());
  const BoundProcess other(all.back());
  EXPECT_EQ(available_cores(std::vector{one.pid(), same.pid()}), 1U);
  const std::uint32_t expected = std::min<std::uint32_t>(available_cores(), all.size() > 1 ? 2 : 1);
  EXPECT_EQ(available_cores(std::vector{one.pid(), same.pid(), other.pid()}), expected);
}

TEST(AvailableCores, AreAtLeastOneForAProcessThatHasEnded) {
  pid_t ended = 0;
  {
    const BoundProcess process(own_affinity().front());
    ended = process.pid();
  }
  EXPECT_EQ(available_cores(std::vector{ended}), 1U);
}

struct Cgroups : testing::Test {
  void put(const fs::path& path, const std::string& text) const {
    fs::create_directories((root / path).parent_path());
    write_file(root / path, text);
  }
  std::optional<double> limit(std::string_view membership) const {
    return cores_of_cgroups(root, membership);
  }

  void SetUp() override { fs::remove_all(root); }

  fs::path root = fs::path(testing::TempDir()) / "syncopate-cgroups";
};

TEST_F(Cgroups, OfVersion2LimitByTheLeastAboveTheProcess) {
  put("cpu.max", "max 100000\n");
  put("job/cpu.max", "250000 100000\n");
  put("job/step/cpu.max", "400000 100000\n");
  EXPECT_EQ(limit("0::/job/step\n"), 2.5);
  EXPECT_EQ(limit("0::/job\n"), 2.5);
  EXPECT_EQ(limit("0::/\n"), std::nullopt);
  EXPECT_EQ(limit("0::/job/step/unknown\n"), 2.5);
}

TEST_F(Cgroups, OfVersion1LimitByTheControllerOfProcessors) {
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  put("cpuset/job/cpu.cfs_quota_us", "100000\n");
  put("cpuset/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit("5:cpuset:/job\n4:cpu,cpuacct:/job\n0::/\n"), 3);
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(limit("5:cpuset:/job\n4:cpu,cpuacct:/job\n0::/\n"), std::nullopt);
}

TEST_F(Cgroups, OfAContainerMayHideTheFolderOfTheProcess) {
  put("cpu/cpu.cfs_quota_us", "150000\n");
  put("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit("4:cpu:/docker/0123456789\n"), 1.5);
}

TEST_F(Cgroups, ThatCannotBeReadLimitNothing) {
  put("job/cpu.max", "nonsense\n");
  for (const char* membership : {"", "\n", "0::/job\n", "no colons\n", "0:one colon\n"}) {
    EXPECT_EQ(limit(membership), std::nullopt) << membership;
  }
}

}  // namespace
}  // namespace syncopate
