// Goal:   lines appear whole and in order; appending keeps earlier lines; a full disk is an error.
// Method: files in a temporary folder, and /dev/full.

#include "telemetry/json_lines.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/errors.hpp"
#include "base/file.hpp"

namespace syncopate {
namespace {

std::string path_of(const std::string& name) {
  return testing::TempDir() + "syncopate-" + name;
}

TEST(JsonLines, WritesOneObjectALineOnFlush) {
  const std::string path = path_of("lines.jsonl");
  JsonLines lines(path, JsonLines::Mode::create);
  lines.write({{"round", 1}, {"loss", 0.5}});
  lines.write({{"round", 2}, {"loss", 0.25}});
  EXPECT_EQ(read_file(path), "");
  lines.flush();
  EXPECT_EQ(read_file(path), "{\"round\":1,\"loss\":0.5}\n{\"round\":2,\"loss\":0.25}\n");
}

TEST(JsonLines, CreatesAnewOrAppends) {
  const std::string path = path_of("append.jsonl");
  JsonLines(path, JsonLines::Mode::create).write({{"round", 1}});
  JsonLines(path, JsonLines::Mode::append).write({{"round", 2}});
  EXPECT_EQ(read_file(path), "{\"round\":1}\n{\"round\":2}\n");
  JsonLines(path, JsonLines::Mode::create).write({{"round", 3}});
  EXPECT_EQ(read_file(path), "{\"round\":3}\n");
}

TEST(JsonLines, ReplacesBytesThatAreNotUtf8) {
  const std::string path = path_of("bytes.jsonl");
  JsonLines(path, JsonLines::Mode::create)
      .write({{"host",
               "a\xff"
               "b"},
              {"name", "\x1b[2J"}});
  EXPECT_EQ(read_file(path),
            "{\"host\":\"a\xef\xbf\xbd"
            "b\",\"name\":\"\\u001b[2J\"}\n");
}

TEST(JsonLines, AFullDiskIsAnErrorThatNamesTheFile) {
  JsonLines lines("/dev/full", JsonLines::Mode::append);
  lines.write({{"round", 1}});
  try {
    lines.flush();
    FAIL() << "/dev/full takes nothing";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "cannot write /dev/full: No space left on device");
  }
}

}  // namespace
}  // namespace syncopate
