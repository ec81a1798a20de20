// Goal:   a reader that does not read never blocks the writer: lines are kept for it in order,
//         lines that are only offered are dropped, memory stays bounded, and a closed pipe raises
//         no signal.
// Method: the test does not read from pipes until they are full, and then compares the lines that
//         it reads with those that were written.

#include "job/launch/line_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "job/launch/descriptor.hpp"
#include "job/launch/event_pipe.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;

/// Reads the lines that are in the pipe now.
std::vector<std::string> read_lines(int descriptor) {
  std::vector<std::string> lines;
  LineSplitter splitter([&](std::string_view line) { lines.emplace_back(line); });
  std::array<char, 4096> bytes{};
  for (ssize_t count = 0; (count = ::read(descriptor, bytes.data(), bytes.size())) > 0;) {
    splitter.add({bytes.data(), static_cast<std::size_t>(count)});
  }
  return lines;
}

std::string numbered(std::size_t number) {
  return std::to_string(number) + std::string(300, '.');
}

TEST(LineWriter, KeepsEveryLineForAReaderThatReturns) {
  const Pipe pipe = make_pipe();
  LineWriter writer(pipe.write.get());
  for (std::size_t i = 0; i < 1000; ++i) {
    writer.write(numbered(i) + "\n");  // 300 kB in all; a pipe holds 64 kB
  }
  EXPECT_TRUE(writer.is_behind());
  EXPECT_FALSE(writer.finish(0s));
  std::vector<std::string> lines;
  do {
    for (std::string& line : read_lines(pipe.read.get())) {
      lines.push_back(std::move(line));
    }
  } while (!writer.finish(0s));
  for (std::string& line : read_lines(pipe.read.get())) {
    lines.push_back(std::move(line));
  }
  std::string joined;
  std::string expected;
  for (const std::string& line : lines) {
    joined += line;  // a line may have been read in two parts
  }
  for (std::size_t i = 0; i < 1000; ++i) {
    expected += numbered(i);
  }
  EXPECT_EQ(joined, expected);
  EXPECT_FALSE(writer.has_lost());
  EXPECT_FALSE(writer.is_behind());
}

TEST(LineWriter, DropsWhatIsOnlyOfferedAndLeavesRoomForTheRest) {
  const Pipe pipe = make_pipe();
  LineWriter writer(pipe.write.get());
  for (std::size_t i = 0; i < 1000; ++i) {
    writer.offer(numbered(i) + "\n");
  }
  writer.write("the last\n");
  EXPECT_TRUE(writer.finish(0s)) << "the other half of the pipe has room for it";
  const std::vector<std::string> lines = read_lines(pipe.read.get());
  ASSERT_THAT(lines, SizeIs(testing::AllOf(testing::Gt(50U), testing::Lt(200U))));
  EXPECT_EQ(lines.front(), numbered(0));
  EXPECT_EQ(lines[lines.size() - 2], numbered(lines.size() - 2));
  EXPECT_EQ(lines.back(), "the last");
  writer.offer("again\n");
  EXPECT_THAT(read_lines(pipe.read.get()), testing::ElementsAre("again"));
}

TEST(LineWriter, BoundsItsMemory) {
  const Pipe pipe = make_pipe();
  LineWriter writer(pipe.write.get());
  const std::string megabyte(std::size_t{1} << 20, '.');
  for (int i = 0; i < 7; ++i) {
    writer.write(megabyte);
  }
  EXPECT_FALSE(writer.has_lost());
  for (int i = 0; i < 2; ++i) {
    writer.write(megabyte);
  }
  EXPECT_TRUE(writer.has_lost());
}

TEST(LineWriter, NoticesThatTheReaderHasGoneWithoutASignal) {
  Pipe pipe = make_pipe();
  LineWriter writer(pipe.write.get());
  writer.write("one\n");
  EXPECT_FALSE(writer.is_closed());
  pipe.read.close();
  writer.write("two\n");  // SIGPIPE would end this test
  EXPECT_TRUE(writer.is_closed());
  writer.write("three\n");
  EXPECT_TRUE(writer.finish(0s)) << "nothing waits for a reader that has gone";
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

TEST(LineWriter, NoticesThatTheReaderHasGoneWithNothingToWrite) {
  Pipe pipe = make_pipe();
  LineWriter writer(pipe.write.get());
  writer.flush();
  EXPECT_FALSE(writer.is_closed());
  pipe.read.close();
  writer.flush();
  EXPECT_TRUE(writer.is_closed());
  EXPECT_FALSE(writer.has_lost()) << "nothing was written";
}

TEST(LineWriter, NeverBlocksOnASocket) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Descriptor write(ends[0]);
  const Descriptor read(ends[1]);
  LineWriter writer(write.get());
  writer.write(std::string(std::size_t{4} << 20, '.'));
  EXPECT_TRUE(writer.is_behind());
}

TEST(EventPipe, DropsStatusesAloneWhileTheSupervisorIsAway) {
  Pipe pipe = make_pipe();
  std::vector<std::string> lines;
  {
    EventPipe events(pipe.write.get());
    for (int i = 0; i < 2000; ++i) {
      events.emit({{"event", "status"}, {"round", i}, {"text", std::string(200, '.')}});
      if (i % 100 == 0) {
        events.emit({{"event", "evaluation"}, {"round", i}});
      }
    }
    events.emit({{"event", "finished"}});
    lines = read_lines(pipe.read.get());
  }
  std::vector<int> evaluations;
  int statuses = 0;
  for (const std::string& line : lines) {
    const auto event = nlohmann::json::parse(line);
    statuses += event["event"] == "status" ? 1 : 0;
    if (event["event"] == "evaluation") {
      evaluations.push_back(event["round"]);
    }
  }
  EXPECT_THAT(evaluations, SizeIs(20));
  EXPECT_TRUE(std::is_sorted(evaluations.begin(), evaluations.end()));
  EXPECT_GT(statuses, 50);
  EXPECT_LT(statuses, 400);
  EXPECT_EQ(nlohmann::json::parse(lines.back())["event"], "finished");
}

}  // namespace
}  // namespace syncopate
