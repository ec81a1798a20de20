// Goal:   a log line cannot control the terminal that shows it, whatever names it contains; without
//         a log of its own a program sees the library's warnings, and the program's own use of
//         spdlog is not affected.
// Method: messages with escape sequences, read from standard error; a log function; a logger of the
//         program.

#include "base/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <sstream>
#include <vector>

namespace syncopate {
namespace {

/// Logs a warning, an info and a debug line; returns what appears on standard error.
std::string logged(const std::string& name) {
  testing::internal::CaptureStderr();
  log::warn("refused {}", name);
  log::info("with {} workers", 2);
  log::debug("by {}", name);
  std::fflush(stderr);
  return testing::internal::GetCapturedStderr();
}

TEST(LogDeathTest, ShowsWarningsOfTheLibraryWhereNobodyHasSetUpOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a new process that runs only this test
  EXPECT_EXIT(
      {
        std::fputs(logged("a").c_str(), stderr);
        std::raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), testing::Eq("syncopate: refused a\n"));
}

TEST(Log, ShowsWhatAProgramAskedFor) {
  log::set_up(log::Verbosity::quiet);
  EXPECT_EQ(logged("a"), "refused a\n");
  log::set_up(log::Verbosity::normal);
  EXPECT_EQ(logged("größer"), "refused größer\nwith 2 workers\n");
  log::set_up(log::Verbosity::verbose);
  EXPECT_EQ(logged("a"), "refused a\nwith 2 workers\nby a\n");
}

TEST(Log, ReplacesWhatActsOnATerminal) {
  log::set_up(log::Verbosity::quiet);
  EXPECT_EQ(logged("\x1b[2J\x07\xff"),
            "refused ?[2J?"
            "?\n");
  EXPECT_EQ(logged("one\n\ttwo\r"), "refused one\n\ttwo \n");
}

TEST(Log, GoesToAFunctionOrToNobody) {
  std::vector<std::string> lines;
  log::send_to([&](log::Level, const std::string& line) { lines.push_back(line); },
               log::Level::info);
  EXPECT_EQ(logged("\x07"), "");
  log::send_to({}, log::Level::debug);
  EXPECT_EQ(logged("b"), "");
  EXPECT_THAT(lines, testing::ElementsAre("refused ?", "with 2 workers"));
}

TEST(Log, LeavesTheProgramsOwnAsItIs) {
  std::ostringstream own;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(own)));
  spdlog::set_pattern("%v");
  log::set_up(log::Verbosity::normal);
  log::warn("of the library");
  spdlog::info("of the program");
  spdlog::set_default_logger(before);
  EXPECT_EQ(own.str(), "of the program\n");
}

}  // namespace
}  // namespace syncopate
