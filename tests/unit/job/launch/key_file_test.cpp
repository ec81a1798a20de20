// Goal:   a job that was started without a key has a key file while it runs, which only its user
//         can read.
// Method: key files in a temporary folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "job/launch/rendezvous.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

class KeyFileTest : public testing::Test {
 protected:
  KeyFileTest() {
    std::string name = (fs::temp_directory_path() / "key_file_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~KeyFileTest() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(KeyFileTest, HoldsARandomKeyThatOnlyItsUserMayRead) {
  const KeyFile file(folder_);
  EXPECT_THAT(file.key(), testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(read_file(file.path()), file.key() + "\n");
  EXPECT_EQ(fs::status(file.path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(file.path().is_absolute()) << "others join from other folders";
}

TEST_F(KeyFileTest, IsAnotherOneEachTimeAndGoneAfterTheJob) {
  std::string first;
  {
    const KeyFile file(folder_);
    first = file.key();
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_NE(KeyFile(folder_).key(), first);
}

TEST_F(KeyFileTest, NamesTheFileThatCannotBeWritten) {
  EXPECT_THROW(KeyFile(folder_ / "nowhere"), DataError);
}

}  // namespace
}  // namespace syncopate
