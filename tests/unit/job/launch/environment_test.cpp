// Goal:   the environment of a job makes numeric libraries fast on this processor, and keeps the
//         variables that the user has set.
// Method: contents of /proc/cpuinfo on several processors; variables with names of this test.
#include "job/launch/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace syncopate {
namespace {

using testing::Contains;
using testing::ElementsAre;

constexpr const char* with_avx512 =
    "processor\t: 0\nflags\t\t: fpu avx2 fma avx512f avx512dq avx512cd avx512bw avx512vl\n";
constexpr const char* with_avx512_in_part = "flags\t\t: fpu avx2 fma avx512f avx512cd\n";
constexpr const char* with_avx2 = "flags\t\t: fpu avx avx2 fma\n";
constexpr const char* of_another_kind = "Features\t: fp asimd sve\n";

TEST(WantedEnvironmentTest, NamesTheKernelsOfTheProcessor) {
  EXPECT_THAT(wanted_environment(with_avx512, 1),
              Contains(Variable{"OPENBLAS_CORETYPE", "SKYLAKEX"}));
  EXPECT_THAT(wanted_environment(with_avx512_in_part, 1),
              Contains(Variable{"OPENBLAS_CORETYPE", "HASWELL"}));
  EXPECT_THAT(wanted_environment(with_avx2, 1), Contains(Variable{"OPENBLAS_CORETYPE", "HASWELL"}));
}

TEST(WantedEnvironmentTest, SetsThreadsAloneOnAnUnknownProcessor) {
  const auto threads =
      ElementsAre(Variable{"OMP_NUM_THREADS", "3"}, Variable{"OPENBLAS_NUM_THREADS", "3"});
  EXPECT_THAT(wanted_environment(of_another_kind, 3), threads);
  EXPECT_THAT(wanted_environment("", 3), threads);
}

TEST(SetEnvironmentTest, KeepsWhatTheUserSetAndTellsBoth) {
  ::setenv("SYNCOPATE_TEST_PRESENT", "user", 1);
  ::unsetenv("SYNCOPATE_TEST_ABSENT");
  std::vector<std::string> reported;
  set_environment({{"SYNCOPATE_TEST_PRESENT", "ours"}, {"SYNCOPATE_TEST_ABSENT", "ours"}},
                  [&](const std::string& line) { reported.push_back(line); });
  EXPECT_STREQ(std::getenv("SYNCOPATE_TEST_PRESENT"), "user");
  EXPECT_STREQ(std::getenv("SYNCOPATE_TEST_ABSENT"), "ours");
  EXPECT_THAT(reported, ElementsAre("SYNCOPATE_TEST_PRESENT=user kept from the environment",
                                    "SYNCOPATE_TEST_ABSENT=ours set"));
}

TEST(SetsMallocTest, KnowsItsVariablesAndTunables) {
  const auto with = [](const Variable& variable) {
    return [variable](const char* name) { return name == variable.name ? variable.value : ""; };
  };
  EXPECT_FALSE(sets_malloc(with({"MALLOC_CHECK_", "1"})));
  EXPECT_FALSE(sets_malloc(with({"GLIBC_TUNABLES", "glibc.rtld.nns=4"})));
  EXPECT_TRUE(sets_malloc(with({"MALLOC_TRIM_THRESHOLD_", "131072"})));
  EXPECT_TRUE(sets_malloc(with({"GLIBC_TUNABLES", "glibc.rtld.nns=4:glibc.malloc.top_pad=1"})));
}

}  // namespace
}  // namespace syncopate
