#pragma once

#include <string>

#include "base/time.hpp"
#include "cli/roles/job.hpp"

namespace syncopate::cli {

struct CoordinateOptions {
  int listener = -1;  ///< a listening socket, the coordinator's from now on
  int events = -1;    ///< takes one line of JSON an event
  std::string token;
  Duration gather_limit{};
  bool by_hand = false;   ///< other members are started by somebody else, and must be judged
  std::string note = {};  ///< what a user is told at the start; empty: where `by_hand` listens
};

/// The coordinator's role, and that of servers that run within its process. Returns the exit status
/// of its process, after telling of the end by an event.
int coordinate(const Job& job, const CoordinateOptions& options);

}  // namespace syncopate::cli
