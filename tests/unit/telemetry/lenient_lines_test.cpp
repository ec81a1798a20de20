// Goal:   a log that cannot be opened or written is reported once and throws nothing; lines that
//         still fit are written.
// Method: /dev/full, a folder that does not exist, and a limit on the size of files.

#include "telemetry/lenient_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string lenient_path(const std::string& name) {
  return testing::TempDir() + "syncopate-lenient-" + name;
}

/// Limits the size of each file of this process to `bytes`; stands for a disk that is nearly full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(LenientLines, ReportsAFullDiskOnce) {
  std::vector<std::string> reports;
  LenientLines lines("/dev/full", JsonLines::Mode::append,
                     [&](const std::string& reason) { reports.push_back(reason); });
  for (int round = 0; round < 3; ++round) {
    lines.write({{"round", round}});
    lines.flush();
  }
  EXPECT_THAT(reports, ElementsAre("cannot write /dev/full: No space left on device; training goes "
                                   "on, and this log lacks lines"));
}

TEST(LenientLines, ReportsAFileThatCannotBeOpened) {
  std::vector<std::string> reports;
  LenientLines lines("/nowhere/log.jsonl", JsonLines::Mode::create,
                     [&](const std::string& reason) { reports.push_back(reason); });
  lines.write({{"round", 1}});
  lines.flush();
  EXPECT_THAT(reports, ElementsAre("cannot open /nowhere/log.jsonl: No such file or directory; "
                                   "training goes on, and this log lacks lines"));
}

TEST(LenientLines, HasWholeLinesAfterADiskWasFullForAWhile) {
  const std::string path = lenient_path("full.jsonl");
  std::vector<std::string> reports;
  LenientLines lines(path, JsonLines::Mode::create,
                     [&](const std::string& reason) { reports.push_back(reason); });
  lines.write({{"round", 1}});
  lines.flush();
  {
    const FileSizeLimit limit(15);  // "{\"round\":1}\n" has 12 bytes
    lines.write({{"round", 2}});
    lines.flush();
  }
  EXPECT_EQ(read_file(path), "{\"round\":1}\n");
  lines.write({{"round", 3}});
  lines.flush();
  EXPECT_EQ(read_file(path), "{\"round\":1}\n{\"round\":3}\n");
  EXPECT_EQ(reports.size(), 1U);
}

TEST(LenientLines, ReportsNothingWhereAllIsWritten) {
  std::vector<std::string> reports;
  const std::string path = lenient_path("whole.jsonl");
  {
    LenientLines lines(path, JsonLines::Mode::create,
                       [&](const std::string& reason) { reports.push_back(reason); });
    lines.write({{"round", 1}});
  }
  EXPECT_EQ(read_file(path), "{\"round\":1}\n") << "the last lines, too";
  EXPECT_THAT(reports, IsEmpty());
}

}  // namespace
}  // namespace syncopate
