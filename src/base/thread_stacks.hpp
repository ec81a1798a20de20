#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace syncopate {

/// A thread of this process at one moment.
struct ThreadStack {
  int id = 0;        ///< as in /proc/PID/task
  std::string name;  ///< "main" for the first one
  char state = '?';  ///< as in /proc: S sleeps, R runs, D waits for a disk or driver, T is stopped
  std::string waits_in;   ///< a function of the kernel; empty if unknown
  bool answered = false;  ///< else at most one frame is known
  /// The innermost first: "syncopate::Group::receive(…) (syncopate-torch+0x1f2e3)". A function that
  /// its file does not export has no name.
  std::vector<std::string> frames;
};

/// Allows `thread_stacks` in this process and in those that it forks from now on: installs a
/// handler of the real-time signal SIGRTMIN + 3, which interrupts a thread for some microseconds.
/// A program calls it once, at its start; the library never does.
void prepare_thread_stacks();

/// The other threads of this process, the first one first. It asks each by a signal. Of a thread
/// that does not answer within `limit`, such as one that a debugger holds, at most one frame is
/// known. Without `prepare_thread_stacks` none answers.
///
/// Thread: any; a second call waits for the first.
std::vector<ThreadStack> thread_stacks(Duration limit);

/// "thread 4711 (main), sleeps in futex_wait_queue:" and a line for each frame; one text for all
/// threads of a name that do the same.
std::vector<std::string> to_text(const std::vector<ThreadStack>& stacks);

/// Logs a warning of `headline` and the stacks of this process, within a fraction of a second.
/// Does nothing in a process that is not prepared.
void log_thread_stacks(std::string_view headline);

}  // namespace syncopate
