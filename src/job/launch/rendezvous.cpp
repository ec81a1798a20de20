#include "job/launch/rendezvous.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "transport/steady_time.hpp"

namespace syncopate {
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

bool is_alive(pid_t process) {
  return ::kill(process, 0) == 0 || errno == EPERM;
}

/// Empty where there is no file, or where the process that published it has ended.
std::optional<Rendezvous::Place> place_in(const fs::path& file) {
  if (!fs::exists(file)) {
    return std::nullopt;
  }
  std::istringstream text(read_file(file));
  pid_t publisher = 0;
  Rendezvous::Place place;
  text >> publisher >> place.address >> place.token;
  return text && is_alive(publisher) ? std::optional(place) : std::nullopt;
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
  write_file(file_, fmt::format("{} {} {}\n", ::getpid(), place.address, place.token));
  published_ = true;
}

Rendezvous::Place Rendezvous::await(Duration limit) const {
  const TimePoint deadline = steady_now() + limit;
  while (true) {
    if (auto place = place_in(file_)) {
      return *std::move(place);
    }
    if (steady_now() >= deadline) {
      throw TimedOut(
          fmt::format("rank 0 did not start on this host within {:.0f} s (no address in {}): for "
                      "ranks on several hosts, use --transport mpi",
                      to_seconds(limit), file_.string()));
    }
    ::poll(nullptr, 0, look_every_ms);
  }
}

}  // namespace syncopate
