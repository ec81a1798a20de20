// Goal:   an atomic file is whole or absent, and a failure names file and reason and leaves
//         nothing.
// Method: files in a temporary folder; a folder that does not exist.

#include "base/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/errors.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / ("syncopate-file-" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(AtomicFile, ShowsNothingBeforeTheCommit) {
  const fs::path path = fresh_folder("commit") / "a.txt";
  AtomicFile file(path);
  file.write("whole");
  EXPECT_FALSE(fs::exists(path));
  file.commit();
  EXPECT_EQ(read_file(path), "whole");
}

TEST(AtomicFile, LeavesTheOldFileWhenItIsGivenUp) {
  const fs::path folder = fresh_folder("give-up");
  write_file(folder / "a.txt", "old");
  {
    AtomicFile file(folder / "a.txt");
    file.write("new");
  }
  EXPECT_EQ(read_file(folder / "a.txt"), "old");
  EXPECT_EQ(entries(folder), 1U);
}

TEST(AtomicFile, NamesTheFileThatCannotBeMade) {
  const fs::path path = fresh_folder("missing") / "no-folder" / "a.txt";
  try {
    AtomicFile file(path);
    FAIL() << "the folder does not exist";
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot create " + path.string() + ": No such file or directory");
  }
}

TEST(ReadFile, NamesTheFileThatIsNotThere) {
  EXPECT_THROW(read_file("/no/such/file"), DataError);
}

}  // namespace
}  // namespace syncopate
