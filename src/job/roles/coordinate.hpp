#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "job/roles/hub.hpp"
#include "job/roles/job.hpp"

namespace syncopate::cli {

struct CoordinateOptions {
  int listener =
      -1;  ///< a listening socket, the coordinator's from now on, of a hub that has an address
  int events = -1;  ///< takes one line of JSON an event
  Hub hub;
  Duration gather_limit{};
  bool by_hand = false;   ///< other members are started by somebody else, and must be judged
  std::string note = {};  ///< what a user is told at the start; empty: where `by_hand` listens
  /// Makes the members that are threads of this process, one after the other: what they are made from, such as
  /// libtorch's random generator, is one for all.
  std::function<std::vector<std::unique_ptr<Candidate>>()> residents = {};
};

/// The coordinator's role, and those of members that live in its process. Returns the exit status
/// of its process, after telling of the end by an event.
int coordinate(const Job& job, const CoordinateOptions& options);

}  // namespace syncopate::cli
