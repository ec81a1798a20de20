// Goal:   a process that connects again and again does not fill the log.
// Method: refusals at hand-made times; the test counts the lines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/log_capture.hpp"
#include "transport/tcp/refusals.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(RefusalLog, HasALineForEachOfTheFirstAndOneAMinuteForTheOthers) {
  LogCapture log;
  tcp::RefusalLog refusals;
  const auto lines = [&log] {
    const std::string text = log.text();
    return std::ranges::count(text, '\n');
  };
  for (int i = 0; i < 20; ++i) {
    refusals.add("127.0.0.1:1", "the job token is wrong", TimePoint{} + i * 1s);
  }
  EXPECT_EQ(lines(), 20);
  for (int i = 20; i < 79; ++i) {
    refusals.add("127.0.0.1:1", "the job token is wrong", TimePoint{} + i * 1s);
  }
  EXPECT_EQ(lines(), 20);
  refusals.add("127.0.0.1:2", "it went away", TimePoint{} + 79s);
  EXPECT_EQ(lines(), 21);
  EXPECT_THAT(log.text(), testing::EndsWith("turned away 59 connections since the last line, and "
                                            "one from 127.0.0.1:2: it went away\n"));
}

}  // namespace
}  // namespace syncopate
