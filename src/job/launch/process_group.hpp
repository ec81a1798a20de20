#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <sstream>

namespace syncopate {

/// The fields of /proc/PID/stat from field 3 on, the state: the name before it is in parentheses
/// and may contain any character. Empty if there is no such process.
std::istringstream stat_behind_name(pid_t process);

/// True if a signal such as SIGSTOP has stopped a process as a whole.
bool is_stopped(pid_t process);

/// A child of this process that leads a process group, and the processes that the child has started
/// in this group: a wrapper such as a shell may end before the program that it started. Processes
/// that have left the group, for a session of their own, do not belong to it.
///
/// The system does not reuse the id of a group while a process of it has not been waited for. So a
/// group whose leader has ended can be signalled as long as this process is the parent of a member.
/// A subreaper becomes the parent of orphans (`AdoptedOrphans`).
///
/// Thread: one.
class ProcessGroup {
 public:
  ProcessGroup() = default;
  /// Called in the parent, after the fork. The child calls `lead`.
  explicit ProcessGroup(pid_t leader);
  /// Called in the child.
  static void lead();

  pid_t leader() const { return leader_; }
  /// Returns the wait status of the leader, once, after it has ended. Does not wait.
  std::optional<int> take_end();
  /// True if some process of the group may still run. `take_end` updates this.
  bool is_alive() const { return alive_; }
  /// Sends a signal to all processes of the group, and to the leader even if it has left the group.
  void signal(int signal) const;
  /// Sends a signal to each process of the group that has a handler for it, except processes that
  /// another one of these has started: they have inherited the handler. Returns their number.
  std::size_t signal_handlers(int signal) const;

 private:
  pid_t leader_ = 0;
  bool leader_runs_ = false;
  bool alive_ = false;
};

/// While it lives, orphans of the children of this process become children of this process.
class AdoptedOrphans {
 public:
  AdoptedOrphans();
  ~AdoptedOrphans();
  AdoptedOrphans(const AdoptedOrphans&) = delete;
  AdoptedOrphans& operator=(const AdoptedOrphans&) = delete;

 private:
  int before_ = 0;
};

}  // namespace syncopate
