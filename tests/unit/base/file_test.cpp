// Goal:   an atomic file is whole or absent; a failure leaves no file, and its error has the path
//         and the reason.
// Method: files in a temporary folder; a folder that does not exist; an `fsync` of this program
//         that records what was flushed.

#include "base/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/errors.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/sanitizers.hpp"

namespace {

struct Flushed {
  ino_t file;
  bool is_folder;
};
std::vector<Flushed> flushed;

}  // namespace

/// Replaces the function of the C library in this program.
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

/// Prevents this process from opening another descriptor, until `end` or the end of the scope.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest_free);
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;
  ~NoMoreDescriptors() { end(); }

  void end() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(AtomicFile, OutlivesAShortLackOfDescriptors) {
  if (sanitizer_needs_descriptors) {
    GTEST_SKIP() << "the sanitizer needs descriptors";
  }
  const fs::path path = fresh_folder("short-lack") / "a.txt";
  NoMoreDescriptors lack;
  const LogCapture log([&] { lack.end(); });
  write_file(path, "whole");
  EXPECT_EQ(read_file(path), "whole");
  EXPECT_THAT(log.text(), testing::MatchesRegex("[^\n]+Too many open files; trying again\n"));
}

TEST(AtomicFile, ReportsALackOfDescriptorsThatLasts) {
  if (sanitizer_needs_descriptors) {
    GTEST_SKIP() << "the sanitizer needs descriptors";
  }
  const fs::path path = fresh_folder("long-lack") / "a.txt";
  const LogCapture log;
  NoMoreDescriptors lack;
  try {
    AtomicFile file(path);
    FAIL() << "there was no descriptor";
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot create " + path.string() + ": Too many open files");
  }
  lack.end();
  EXPECT_THAT(log.text(), testing::MatchesRegex("[^\n]+\n"));
  EXPECT_EQ(entries(path.parent_path()), 0U);
}

TEST(AtomicFile, MayBeReadableByItsOwnerAlone) {
  const fs::path folder = fresh_folder("owner");
  write_file(folder / "key", "secret", readable_by_owner);
  EXPECT_EQ(fs::status(folder / "key").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST(FileStatusOf, SaysWhyTheSystemDoesNotKnow) {
  const fs::path folder = fresh_folder("status");
  EXPECT_TRUE(is_there(folder));
  EXPECT_FALSE(is_there(folder / "none" / "below"));
  fs::create_symlink("loop", folder / "loop");
  try {
    is_there(folder / "loop" / "file");
    FAIL() << "the links lead in a circle";
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(), "cannot look at " + (folder / "loop" / "file").string() +
                                ": Too many levels of symbolic links; name another path, or "
                                "correct the folders and links that lead there");
  }
}

}  // namespace
}  // namespace syncopate
