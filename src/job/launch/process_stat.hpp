#pragma once

#include <sys/types.h>

#include <sstream>

namespace syncopate {

/// What /proc/PID/stat says of a process, from field 3 on, its state: the name before it is in
/// parentheses and may hold anything. Empty where there is no such process.
std::istringstream stat_behind_name(pid_t process);

/// Whether a signal such as SIGSTOP has stopped a process as a whole.
bool is_stopped(pid_t process);

}  // namespace syncopate
