// Goal:   an atomic file is whole or absent, and a failure names file and reason and leaves
//         nothing.
// Method: files in a temporary folder; a folder that does not exist; an `fsync` of this program
//         that notes what was flushed.

#include "base/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/errors.hpp"

namespace {

struct Flushed {
  ino_t file;
  bool is_folder;
};
std::vector<Flushed> flushed;

}  // namespace

/// Replaces that of the C library in this program.
extern "C" int fsync(int descriptor) {
  struct stat facts {};
  ::fstat(descriptor, &facts);
  flushed.push_back({facts.st_ino, S_ISDIR(facts.st_mode)});
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

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

ino_t number_of(const fs::path& path) {
  struct stat facts {};
  ::stat(path.c_str(), &facts);
  return facts.st_ino;
}

TEST(AtomicFile, FlushesTheFileAndThenItsFolder) {
  const fs::path folder = fresh_folder("flush");
  flushed.clear();
  write_file(folder / "a.txt", "whole");
  ASSERT_EQ(flushed.size(), 2U);
  EXPECT_EQ(flushed[0].file, number_of(folder / "a.txt"));
  EXPECT_EQ(flushed[1].file, number_of(folder));
  EXPECT_TRUE(flushed[1].is_folder);
}

TEST(AtomicFile, LeftoversOfKilledProcessesAreRemovedAndNothingElse) {
  const fs::path folder = fresh_folder("leftovers");
  for (const char* name : {"a.txt.4711.tmp", "round-1.safetensors.1.tmp", "a.txt", "mine.tmp",
                           "a.txt.47x.tmp", "a..tmp"}) {
    write_file(folder / name, "");
  }
  remove_leftovers(folder);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder)) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("a.txt", "mine.tmp", "a.txt.47x.tmp", "a..tmp"));
  remove_leftovers(folder / "no-folder");
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
