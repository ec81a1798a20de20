#include "job/launch/rendezvous.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/interruption.hpp"
#include "base/random.hpp"
#include "job/launch/process_group.hpp"
#include "transport/steady_time.hpp"

namespace syncopate {

KeyFile::KeyFile(const std::filesystem::path& folder)
    : key_(unguessable_token()), path_(std::filesystem::absolute(folder / "job.key")) {
  write_file(path_, key_ + "\n", readable_by_owner);
}

KeyFile::~KeyFile() {
  std::error_code ignored;  // a file that cannot be removed opens no other job
  std::filesystem::remove(path_, ignored);
}

namespace {

namespace fs = std::filesystem;

/// Milliseconds between two checks for the file.
constexpr int look_every_ms = 20;

fs::path usual_folder() {
  return fs::temp_directory_path() / fmt::format("syncopate-{}", ::getuid());
}

/// Refuses a folder that other users can write to: their file could name another coordinator.
void make_own(const fs::path& folder) {
  struct stat facts {};
  if ((::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) ||
      ::lstat(folder.c_str(), &facts) != 0) {
    throw DataError(fmt::format("cannot make the folder {}, in which ranks find each other: {}",
                                folder.string(), std::strerror(errno)));
  }
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::getuid() || (facts.st_mode & 0077) != 0) {
    throw DataError(
        fmt::format("ranks find each other in {}, which must be a folder that only this user may "
                    "read: remove it, or set TMPDIR to another folder",
                    folder.string()));
  }
}

/// The start of a process, in ticks since the start of the host; 0 if there is no such process. The
/// system reuses the number of a process after a while, often for a rank of the same launcher, but
/// never number and start together.
std::uint64_t start_of(pid_t process) {
  std::istringstream fields = stat_behind_name(process);  // the start is field 22
  std::string skipped;
  for (int field = 3; field < 22; ++field) {
    fields >> skipped;
  }
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

/// Empty if there is no file, or if the process that published it has ended.
std::optional<Rendezvous::Place> place_in(const fs::path& file) {
  if (!fs::exists(file)) {
    return std::nullopt;
  }
  std::istringstream text(read_file(file));
  pid_t publisher = 0;
  std::uint64_t start = 0;
  Rendezvous::Place place;
  text >> publisher >> start >> place.address >> place.token;
  return text && start != 0 && start == start_of(publisher) ? std::optional(place) : std::nullopt;
}

}  // namespace

Rendezvous::Rendezvous(const fs::path& folder, const std::string& job) : file_(folder / job) {
  make_own(folder);
}

Rendezvous::Rendezvous(const std::string& job) : Rendezvous(usual_folder(), job) {}

Rendezvous::~Rendezvous() {
  if (published_) {
    std::error_code ignored;  // a reader of the file sees that its publisher has ended
    fs::remove(file_, ignored);
  }
}

void Rendezvous::publish(const Place& place) {
  write_file(file_, fmt::format("{} {} {} {}\n", ::getpid(), start_of(::getpid()), place.address,
                                place.token));
  published_ = true;
}

Rendezvous::Place Rendezvous::await(Duration limit, const std::string& advice) const {
  const TimePoint deadline = steady_now() + limit;
  while (true) {
    if (auto place = place_in(file_)) {
      return *std::move(place);
    }
    if (steady_now() >= deadline) {
      throw TimedOut(
          fmt::format("rank 0 did not start on this host within {:.0f} s (no address in {}): for "
                      "ranks on several hosts, {}",
                      to_seconds(limit), file_.string(), advice));
    }
    interruption::throw_if_requested();
    ::poll(nullptr, 0, look_every_ms);
  }
}

}  // namespace syncopate
