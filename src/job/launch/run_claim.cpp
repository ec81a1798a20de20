#include "job/launch/run_claim.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/time.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/exit_status.hpp"
#include "report/run_folder.hpp"
#include "spec/config_file.hpp"
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

namespace {

[[noreturn]] void refuse_folder(const std::filesystem::path& path, const std::error_code& error) {
  throw DataError(fmt::format(
      "cannot make the run folder {}: {}; choose another one by --run-dir, or start in a folder "
      "that you may write to",
      path.string(), error.message()));
}

/// True if anything has this name.
bool is_taken(const std::filesystem::path& path) {
  std::error_code error;
  const bool is = std::filesystem::exists(path, error);
  if (error) {
    refuse_folder(path, error);
  }
  return is;
}

/// Makes a new folder of this name, or of the name with the next free number.
std::filesystem::path make_fresh_folder(const std::filesystem::path& wanted) {
  std::error_code error;
  std::filesystem::create_directories(wanted.parent_path(), error);
  std::filesystem::path path = wanted;
  for (int number = 2; !error && !std::filesystem::create_directory(path, error); ++number) {
    path = fmt::format("{}-{}", wanted.string(), number);
  }
  if (error) {
    refuse_folder(path, error);
  }
  return path;
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    refuse_folder(path, error);
  }
}

/// If another user owns the folder, links with the names of this run's files may lead to files that
/// only this user may change.
void refuse_links_of_others(const std::filesystem::path& folder) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0 || facts.st_uid == ::geteuid()) {
    return;
  }
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_symlink(unknown)) {
      throw DataError(fmt::format(
          "{}: expected no link in a run folder of another user (number {}), found one; choose "
          "another --run-dir",
          entry->path().string(), facts.st_uid));
    }
  }
}

void remove_all_leftovers(const RunFolder& folder) {
  for (const auto& path :
       {folder.root(), folder.checkpoints(), folder.worker_log(Rank{0}).parent_path()}) {
    remove_leftovers(path);
  }
}

/// Removes the run folder from the configuration, so that the same job runs again in another
/// folder.
void write_config(TrainConfig config) {
  const auto file = RunFolder(std::exchange(config.run_dir, {})).config();
  write_file(file, to_toml(config));
}

}  // namespace

std::filesystem::path own_run_dir(const TrainConfig& job, const JoinRequest& request, Rank index) {
  const std::filesystem::path runs = std::filesystem::absolute("runs");
  const std::filesystem::path named = job.run_dir.lexically_normal();
  if (request.launched && named.parent_path() == runs && named.has_filename()) {
    return named;
  }
  return make_fresh_folder(runs / fmt::format("{}-{}-{}-{}", time_for_a_name(), job.scheme,
                                              request.role == Role::server ? "server" : "worker",
                                              index.value));
}

RunClaim::RunClaim(JobRequest request) : request_(std::move(request)) {
  TrainConfig& config = request_.config;
  if (!request_.resumed) {
    made_ = !is_taken(config.run_dir) || !request_.named_run_dir;
    if (request_.named_run_dir) {
      make_folder(config.run_dir);
    } else {
      config.run_dir = make_fresh_folder(config.run_dir);
    }
  }
  refuse_links_of_others(config.run_dir);
  lock_.emplace(config.run_dir);
  remove_all_leftovers(RunFolder(config.run_dir));
  if (request_.resumed) {
    return;
  }
  const bool of_programs = config.epochs >= open_end;  // which save their models themselves
  RunFolder(config.run_dir).create(/*has_checkpoints=*/!of_programs);
  try {
    write_config(config);
  } catch (const Error&) {
    give_up();
    throw;
  }
}

RunClaim::~RunClaim() {
  give_up();
}

void RunClaim::go_on_from(const std::filesystem::path& checkpoint, std::uint64_t round) {
  checkpoint_ = checkpoint;
  replace_config();
  keep_rounds_up_to(RunFolder(request_.config.run_dir).evaluations(), round);
}

void RunClaim::begin_again() {
  replace_config();
  const auto evaluations = RunFolder(request_.config.run_dir).evaluations();
  if (is_there(evaluations)) {
    write_file(evaluations, "");
  }
}

/// Keeps the files of the ended run for `restore`. Its summary does not apply to the new session.
void RunClaim::replace_config() {
  const RunFolder folder(request_.config.run_dir);
  for (const auto& path : {folder.config(), folder.evaluations(), folder.summary()}) {
    if (is_there(path)) {
      earlier_[path] = read_file(path);
    }
  }
  write_config(request_.config);
  std::filesystem::remove(folder.summary());
}

void RunClaim::restore() const {
  for (const auto& [path, text] : earlier_) {
    try {
      write_file(path, text);
    } catch (const Error& error) {
      log::warn("{}", error.what());
    }
  }
}

void RunClaim::give_up() {
  if (kept_) {
    return;
  }
  if (request_.resumed) {
    restore();
    return;
  }
  const RunFolder folder(request_.config.run_dir);
  std::error_code ignored;  // files that cannot be removed stay
  std::filesystem::remove(folder.config(), ignored);
  std::filesystem::remove(folder.checkpoints(), ignored);
  std::filesystem::remove(folder.worker_log(Rank{0}).parent_path(), ignored);
  std::filesystem::remove(folder.spans_of_coordinator(), ignored);
  std::filesystem::remove(folder.spans(), ignored);
  lock_.reset();
  if (made_) {
    std::filesystem::remove(folder.root(), ignored);
  }
}

}  // namespace syncopate
