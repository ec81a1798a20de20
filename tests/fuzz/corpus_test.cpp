// Goal:   no decoder fails on an input that a fuzzer has found.
// Method: each file of tests/fuzz/corpus goes to its target, under the sanitizers of this build.
//         Each target has inputs.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {
namespace {

struct Corpus : testing::TestWithParam<Target> {};

TEST_P(Corpus, IsAcceptedOrRefused) {
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(SYNCOPATE_SOURCE_TREE) / "tests/fuzz/corpus" / GetParam().name)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<std::uint8_t> input(std::istreambuf_iterator<char>(file), {});
    GetParam().run(input);
    ++inputs;
  }
  EXPECT_GT(inputs, 0U);
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus,
                         testing::ValuesIn(all_targets().begin(), all_targets().end()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace syncopate::fuzz
