#pragma once

#include <sys/types.h>

#include <filesystem>

#include "job/launch/descriptor.hpp"

namespace syncopate {

/// Holds a run folder for one job: a lock (flock) on its file `run.lock`, which names the process
/// and the host. Processes that are forked afterwards share the lock. So the folder is free again
/// once the last process of the job has ended, however it ended.
class RunLock {
 public:
  /// Waits for the end of processes whose job's first process was killed: they end soon, too.
  /// Errors: ConfigError, which names the folder and the process that holds it; DataError if the
  ///         folder cannot be written.
  explicit RunLock(const std::filesystem::path& folder);
  /// Removes the file, in the process that has made the lock.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  bool take();

  std::filesystem::path file_;
  Descriptor descriptor_;
  pid_t owner_;
};

}  // namespace syncopate
