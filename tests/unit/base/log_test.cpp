// Goal:   a log line cannot act on the terminal that shows it, whatever a name in it holds.
// Method: messages with escape sequences, read from standard error.

#include "base/log.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace syncopate {
namespace {

std::string logged(const std::string& role, const std::string& name) {
  testing::internal::CaptureStderr();
  log::set_up(role, log::Verbosity::normal);
  log::warn("refused {}", name);
  log::debug("not shown");
  std::fflush(stderr);
  return testing::internal::GetCapturedStderr();
}

TEST(Log, ShowsAMessageAsItIs) {
  EXPECT_EQ(logged("", "worker 1"), "refused worker 1\n");
  EXPECT_EQ(logged("server 0", "größer"), "[server 0] refused größer\n");
}

TEST(Log, ReplacesWhatActsOnATerminal) {
  EXPECT_EQ(logged("", "\x1b[2J\x07\xff"),
            "refused ?[2J?"
            "?\n");
  EXPECT_EQ(logged("", "one\n\ttwo\r"), "refused one\n\ttwo \n");
}

}  // namespace
}  // namespace syncopate
