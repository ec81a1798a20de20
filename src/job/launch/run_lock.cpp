#include "job/launch/run_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/time.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/exit_status.hpp"
#include "transport/steady_time.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

/// The kernel kills the processes of a job whose first process has died; one that writes to a slow
/// disk ends later.
constexpr Duration until_orphans_have_ended = std::chrono::seconds(5);
constexpr int try_again_ms = 20;

struct Holder {
  pid_t process = 0;
  std::string host;
};

/// The process is 0 while the holder has not written its number yet.
Holder holder_in(const fs::path& file) {
  std::ifstream text(file);
  Holder holder;
  text >> holder.process >> holder.host;
  return holder;
}

bool has_died(const Holder& holder) {
  return holder.process != 0 && holder.host == host_name() && ::kill(holder.process, 0) != 0 &&
         errno == ESRCH;
}

/// True if the lock will be free soon.
bool ends_soon(const Holder& holder) {
  return holder.process == 0 || has_died(holder);
}

[[noreturn]] void throw_in_use(const fs::path& file) {
  const Holder holder = holder_in(file);
  if (has_died(holder)) {
    throw ConfigError(fmt::format(
        "{} is in use: process {}, which wrote it, has ended, but another one holds its "
        "file run.lock; end that one (`fuser {}` shows it), or choose another --run-dir",
        file.parent_path().string(), holder.process, file.string()));
  }
  throw ConfigError(fmt::format(
      "{} is in use: a job writes it, process {} on {}; wait until it has ended, or choose another "
      "--run-dir",
      file.parent_path().string(), holder.process, holder.host));
}

[[noreturn]] void throw_unwritable(const fs::path& file) {
  throw DataError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
}

/// False if another process has removed the file since it was opened.
bool is_named(const Descriptor& descriptor, const fs::path& file) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor.get(), &opened) == 0 && ::stat(file.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

void write_holder(const Descriptor& descriptor, const fs::path& file) {
  const std::string text = fmt::format("{} {}\n", process_id(), host_name());
  if (::ftruncate(descriptor.get(), 0) != 0 || ::pwrite(descriptor.get(), text.data(), text.size(),
                                                        0) != static_cast<ssize_t>(text.size())) {
    throw_unwritable(file);
  }
}

}  // namespace

RunLock::RunLock(const fs::path& folder) : file_(folder / "run.lock"), owner_(::getpid()) {
  const TimePoint deadline = steady_now() + until_orphans_have_ended;
  while (!take()) {
    if (!ends_soon(holder_in(file_)) || steady_now() >= deadline) {
      throw_in_use(file_);
    }
    ::poll(nullptr, 0, try_again_ms);
  }
  write_holder(descriptor_, file_);
}

RunLock::~RunLock() {
  if (::getpid() == owner_) {
    std::error_code ignored;  // a file that stays is no lock
    fs::remove(file_, ignored);
  }
}

/// Returns false while another process holds the lock.
bool RunLock::take() {
  // A user who may read a file may lock it. A link would lead to a file of another user.
  descriptor_ = Descriptor(
      ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, readable_by_owner));
  if (descriptor_.get() < 0) {
    throw_unwritable(file_);
  }
  ::fchmod(descriptor_.get(), readable_by_owner);  // for a file of an older version
  if (::flock(descriptor_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return false;
    }
    // Some parallel file systems have no locks: a job there must start all the same.
    print_error(
        fmt::format("cannot lock {} ({}), so see to it that no other job writes this folder",
                    file_.string(), std::strerror(errno))
            .c_str());
  }
  return is_named(descriptor_, file_);
}

}  // namespace syncopate
