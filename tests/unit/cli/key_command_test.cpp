// Goal:   a key is made once, and a job takes it from an option or from a variable.
// Method: whole command lines with a handler that records how a worker joins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "cli/handlers.hpp"
#include "tests/unit/cli/ran_command.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class KeyCommandTest : public testing::Test {
 protected:
  KeyCommandTest() {
    std::string name = (fs::temp_directory_path() / "key_command_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    handlers_.join = [this](const JoinRequest& request) {
      join_ = request;
      return 0;
    };
  }
  ~KeyCommandTest() override { fs::remove_all(folder_); }

  RanCommand run(const std::vector<std::string>& words) { return run_words(words, handlers_); }

  /// How a worker joins with these options.
  JoinRequest joined(const std::vector<std::string>& options) {
    std::vector<std::string> words{"worker", "--join", "127.0.0.1:1"};
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_EQ(run(words).status, 0);
    return join_.value();
  }

  std::string refusal(const std::vector<std::string>& words) {
    const RanCommand ran = run(words);
    EXPECT_EQ(ran.status, 2);
    return ran.err;
  }

  /// A key that a job takes.
  std::string new_key() {
    std::string path = (folder_ / "new.key").string();
    EXPECT_THAT(run({"key", "new", path}).out, HasSubstr("wrote a new key to " + path));
    return path;
  }

  fs::path folder_;
  std::optional<JoinRequest> join_;
  Handlers handlers_;
};

TEST_F(KeyCommandTest, MakesAKeyForItsOwnerAlone) {
  const std::string path = new_key();
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const JoinRequest request = joined({"--secret", path, "--interface", "eth1"});
  EXPECT_THAT(request.token, testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_TRUE(request.encrypted);
  EXPECT_EQ(request.place.interface, "eth1");
}

TEST_F(KeyCommandTest, AMemberListensAtOneOfTheGivenPorts) {
  const std::string path = new_key();
  EXPECT_EQ(joined({"--secret", path}).place.ports, PortRange());
  EXPECT_EQ(joined({"--secret", path, "--ports", "9100-9199"}).place.ports,
            (PortRange{9100, 9199}));
  EXPECT_EQ(joined({"--secret", path, "--ports", "9100"}).place.ports, (PortRange{9100, 9100}));
  for (const std::string wrong : {"9199-9100", "0-9", "-", "9100-", "9100-65536", "a"}) {
    EXPECT_THAT(
        refusal({"worker", "--join", "node1:9091", "--ports", wrong}),
        HasSubstr("--ports: expected FIRST-LAST, from 1 to 65535, such as 9100-9199, found '" +
                  wrong + "'"));
  }
}

TEST_F(KeyCommandTest, ReplacesNoFile) {
  const std::string path = new_key();
  const std::string key = joined({"--secret", path}).token;
  EXPECT_THAT(refusal({"key", "new", path}), HasSubstr("exists: a job that uses it would lose"));
  EXPECT_EQ(joined({"--secret", path}).token, key);
}

TEST_F(KeyCommandTest, SaysWhatItExpects) {
  EXPECT_THAT(refusal({"key"}), HasSubstr("expected `syncopate key new FILE`"));
  EXPECT_THAT(refusal({"key", "new"}), HasSubstr("found `syncopate key new`"));
  EXPECT_THAT(refusal({"key", "old", "a"}), HasSubstr("found `syncopate key old a`"));
}

TEST_F(KeyCommandTest, SixteenBytesAreLongEnough) {
  const fs::path path = folder_ / "own.key";
  std::ofstream(path) << " 0123456789abcdef\n";
  fs::permissions(path, fs::perms::owner_read);
  EXPECT_EQ(joined({"--secret", path.string()}).token, "0123456789abcdef");
}

TEST_F(KeyCommandTest, AVariableMayNameTheFile) {
  ::setenv("SYNCOPATE_KEY_FILE", new_key().c_str(), 1);
  const JoinRequest request = joined({});
  ::unsetenv("SYNCOPATE_KEY_FILE");
  EXPECT_EQ(request.token.size(), 32);
  EXPECT_FALSE(joined({}).encrypted);
}

}  // namespace
}  // namespace syncopate::cli
