// Goal:   ranks of one host find the address that rank 0 published, and no other.
// Method: a folder with addresses from this process and from one that has ended.

#include "job/launch/rendezvous.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <thread>

#include "base/errors.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr Duration at_once{};
const Rendezvous::Place place{.address = "127.0.0.1:4711", .token = "secret"};

class RendezvousTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rendezvous_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path folder() const { return root_ / "own"; }

  std::string found_by(const Rendezvous& one) const {
    try {
      return one.await(at_once).address;
    } catch (const TimedOut& error) {
      return error.what();
    }
  }

 private:
  fs::path root_;
};

TEST_F(RendezvousTest, ShowsWhatWasPublishedUntilItsPublisherGoes) {
  const Rendezvous reader(folder(), "job");
  EXPECT_THAT(found_by(reader), HasSubstr("rank 0 did not start on this host within 0 s"));
  {
    Rendezvous publisher(folder(), "job");
    publisher.publish(place);
    EXPECT_EQ(reader.await(at_once), place);
  }
  EXPECT_THAT(found_by(reader), HasSubstr("rank 0 did not start"));
}

TEST_F(RendezvousTest, WaitsForThePublisher) {
  const Rendezvous reader(folder(), "job");
  Rendezvous publisher(folder(), "job");
  std::thread late([&] { publisher.publish(place); });
  EXPECT_EQ(reader.await(std::chrono::minutes(2)), place);
  late.join();
}

TEST_F(RendezvousTest, KeepsJobsApart) {
  Rendezvous one(folder(), "one");
  one.publish(place);
  EXPECT_THAT(found_by(Rendezvous(folder(), "other")), HasSubstr("/own/other): for ranks on"));
}

TEST_F(RendezvousTest, PassesOverWhatTheDeadHaveLeft) {
  const Rendezvous reader(folder(), "job");
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  std::ofstream(folder() / "job") << child << " 1 127.0.0.1:1 old\n";
  EXPECT_THAT(found_by(reader), HasSubstr("rank 0 did not start"));
}

TEST_F(RendezvousTest, PassesOverWhatAnEarlierProcessOfThePublishersNumberHasLeft) {
  const Rendezvous reader(folder(), "job");
  std::ofstream(folder() / "job") << ::getpid() << " 1 127.0.0.1:1 old\n";
  EXPECT_THAT(found_by(reader), HasSubstr("rank 0 did not start"));
}

TEST_F(RendezvousTest, IsForThisUserAlone) {
  Rendezvous one(folder(), "job");
  struct stat facts {};
  ASSERT_EQ(::stat(folder().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700);
}

TEST_F(RendezvousTest, RefusesAFolderThatOthersMayWriteTo) {
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms::all);
  EXPECT_THROW(Rendezvous(folder(), "job"), DataError);
}

}  // namespace
}  // namespace syncopate
