#include "job/launch/process_group.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace syncopate {

/// Both processes do it, so that the group is there for either. Here it fails once the child has
/// become another program, which it does after its own call.
ProcessGroup::ProcessGroup(pid_t leader) : leader_(leader), leader_runs_(true), alive_(true) {
  ::setpgid(leader, leader);
}

void ProcessGroup::lead() {
  ::setpgid(0, 0);
}

std::optional<int> ProcessGroup::take_end() {
  std::optional<int> end;
  int status = 0;
  if (leader_runs_ && ::waitpid(leader_, &status, WNOHANG) == leader_) {
    end = status;
  }
  pid_t ended = 0;
  while (alive_ && (ended = ::waitpid(-leader_, &status, WNOHANG)) > 0) {
    if (ended == leader_) {
      end = status;
    }
  }
  leader_runs_ = leader_runs_ && !end;
  alive_ = alive_ && (leader_runs_ || ended == 0);
  return end;
}

void ProcessGroup::signal(int signal) const {
  if (!alive_) {
    return;
  }
  if (leader_runs_ && ::getpgid(leader_) != leader_) {
    ::kill(leader_, signal);
  }
  ::kill(-leader_, signal);  // fails where the leader has left, and nothing else was there
}

AdoptedOrphans::AdoptedOrphans() {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

AdoptedOrphans::~AdoptedOrphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, before_);
}

}  // namespace syncopate
