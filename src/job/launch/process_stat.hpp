#pragma once

#include <sys/types.h>

#include <sstream>

namespace syncopate {

/// The fields of /proc/PID/stat from field 3 on, the state: the name before it is in parentheses
/// and may contain any character. Empty if there is no such process.
std::istringstream stat_behind_name(pid_t process);

/// True if a signal such as SIGSTOP has stopped a process as a whole.
bool is_stopped(pid_t process);

}  // namespace syncopate
