#include "job/launch/process_group.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace syncopate {

std::istringstream stat_behind_name(pid_t process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  const std::string text(std::istreambuf_iterator<char>(stat), {});
  const std::size_t end_of_name = text.rfind(')');
  return std::istringstream(end_of_name == std::string::npos ? "" : text.substr(end_of_name + 1));
}

bool is_stopped(pid_t process) {
  char state = 0;
  return (stat_behind_name(process) >> state) && state == 'T';
}

namespace {

namespace fs = std::filesystem;

struct GroupProcess {
  pid_t process = 0;
  pid_t parent = 0;
};

/// The processes of a group.
std::vector<GroupProcess> members_of(pid_t group) {
  std::vector<GroupProcess> members;
  std::error_code failure;
  for (fs::directory_iterator entry("/proc", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename();
    GroupProcess member;
    const auto [stop, error] =
        std::from_chars(name.data(), name.data() + name.size(), member.process);
    if (error != std::errc() || *stop != '\0') {
      continue;
    }
    std::istringstream fields = stat_behind_name(member.process);
    char state = 0;
    pid_t its_group = 0;
    if (fields >> state >> member.parent >> its_group && its_group == group) {
      members.push_back(member);
    }
  }
  return members;
}

/// Reads the mask in /proc/PID/status.
bool handles(pid_t process, int signal) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  std::string name;
  std::uint64_t mask = 0;
  while (status >> name && name != "SigCgt:") {
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return status >> std::hex >> mask && (mask >> (signal - 1) & 1U) != 0;
}

}  // namespace

/// Both processes make the group, so that it exists for either of them. Here the call fails once
/// the child has become another program, but that is after the child's own call.
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
  ::kill(-leader_, signal);  // fails if the leader has left the group and was alone in it
}

std::size_t ProcessGroup::signal_handlers(int signal) const {
  if (!alive_) {
    return 0;
  }
  std::vector<GroupProcess> handlers = members_of(leader_);
  std::erase_if(handlers, [&](const GroupProcess& one) { return !handles(one.process, signal); });
  std::set<pid_t> all;
  std::ranges::transform(handlers, std::inserter(all, all.end()), &GroupProcess::process);
  std::erase_if(handlers, [&](const GroupProcess& one) { return all.contains(one.parent); });
  return static_cast<std::size_t>(std::ranges::count_if(
      handlers, [&](const GroupProcess& one) { return ::kill(one.process, signal) == 0; }));
}

AdoptedOrphans::AdoptedOrphans() {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

AdoptedOrphans::~AdoptedOrphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, before_);
}

}  // namespace syncopate
