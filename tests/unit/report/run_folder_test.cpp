// Goal:   a run folder is created once, and logs are cut back to the round from which a run
//         resumes.
// Method: folders and logs in a temporary folder.

#include "report/run_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "base/file.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

RunFolder fresh_folder(const std::string& name) {
  const fs::path root = fs::path(testing::TempDir()) / ("syncopate-run-" + name);
  fs::remove_all(root);
  return RunFolder(root);
}

TEST(RunFolder, IsMadeWithItsSubfoldersAndRefusesASecondRun) {
  const RunFolder folder = fresh_folder("twice");
  folder.create();
  EXPECT_TRUE(fs::is_directory(folder.checkpoints()));
  EXPECT_EQ(folder.worker_log(Rank{2}), folder.root() / "workers" / "2.jsonl");
  write_file(folder.config(), "");
  try {
    folder.create();
    FAIL() << "it holds a run";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("already holds a run"));
  }
}

TEST(RunFolder, SaysWhyItCannotBeMade) {
  const RunFolder folder("/proc/syncopate/run");
  EXPECT_THROW(folder.create(), DataError);
  const fs::path root = fresh_folder("circle").root();
  fs::create_directories(root);
  fs::create_symlink("loop", root / "loop");
  EXPECT_THROW(RunFolder(root / "loop").create(), DataError);
}

TEST(RunFolder, KeepsTheRoundsUpToTheCheckpointAndNoHalfLine) {
  const RunFolder folder = fresh_folder("cut");
  folder.create();
  const fs::path log = folder.worker_log(Rank{0});
  write_file(
      log, "{\"round\":1}\n{\"round\":2}\n{\"round\":3}\n{\"round\":null}\n{\"round\":-1}\n{\"rou");
  keep_rounds_up_to(log, 2);
  EXPECT_EQ(read_file(log), "{\"round\":1}\n{\"round\":2}\n");
  keep_rounds_up_to(folder.worker_log(Rank{7}), 2);
  EXPECT_FALSE(fs::exists(folder.worker_log(Rank{7})));
}

TEST(RunFolder, KnowsTheWorkersWhoseLogsAreThere) {
  const RunFolder folder = fresh_folder("logged");
  EXPECT_TRUE(folder.logged_workers().empty());
  folder.create();
  for (const std::uint32_t rank : {10U, 2U, 1U}) write_file(folder.worker_log(Rank{rank}), "");
  for (const char* other : {"03.jsonl", "-4.jsonl", "5", "6.jsonl.old", "x.jsonl"}) {
    write_file(folder.root() / "workers" / other, "");
  }
  EXPECT_THAT(folder.logged_workers(), testing::ElementsAre(Rank{1}, Rank{2}, Rank{10}));
  fs::remove_all(folder.root() / "workers");
  write_file(folder.root() / "workers", "a file");
  EXPECT_THROW(folder.logged_workers(), DataError);
}

}  // namespace
}  // namespace syncopate
