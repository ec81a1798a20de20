#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>

namespace syncopate {

/// A child of this process that leads a process group, and what the child has started in this
/// group: a wrapper such as a shell may end before the program that it started. Processes that have
/// left the group, for a session of their own, do not belong to it.
///
/// The id of a group is given to no other one while a process of it has not been waited for. So a
/// group whose leader has ended is signalled as long as this process is the parent of a member,
/// which it becomes of orphans where it is a subreaper (`AdoptedOrphans`).
///
/// Thread: one.
class ProcessGroup {
 public:
  ProcessGroup() = default;
  /// In the parent, after the fork. The child calls `lead`.
  explicit ProcessGroup(pid_t leader);
  /// In the child.
  static void lead();

  pid_t leader() const { return leader_; }
  /// The wait status of the leader, once, when it has ended. Does not wait.
  std::optional<int> take_end();
  /// Some process of the group may still run. `take_end` brings it up to date.
  bool is_alive() const { return alive_; }
  /// To all processes of the group, and to the leader wherever it is.
  void signal(int signal) const;
  /// To each process of the group that has a handler for it, but to none that was started by
  /// another one of these: it would have inherited the handler. Returns to how many.
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
