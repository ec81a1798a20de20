#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// Finds programs that wait for each other in vain: the loop of one waits in a collective of its
/// own, in which another one takes no part, since it waits in a step for the first one. A pure
/// state machine.
///
/// For as long as the patience every worker must have done nothing but one of the two, and each
/// must have been heard.
///
/// Order:  heartbeats in the order of their arrival.
/// Thread: one.
class MutualWait {
 public:
  struct Found {
    NodeId in_collective;
    std::string operation;  ///< in words
    NodeId in_step;
    std::uint64_t step = 0;
    Duration waited{};
  };

  void joined(NodeId worker, TimePoint now);
  /// Has no effect for a node that has not joined.
  void on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now);
  void gone(NodeId node) { workers_.erase(node); }
  /// The listener was absent for this long.
  void forgive(Duration absence, TimePoint now);

  std::optional<Found> found(Duration patience, TimePoint now) const;

 private:
  enum class Place { elsewhere, collective, step };
  struct Worker {
    Place place = Place::elsewhere;
    TimePoint since;  ///< at this place, and in the same step
    TimePoint heard;
    std::uint64_t step = 0;
    std::string operation;
  };
  /// A heartbeat that is older says nothing of now.
  static constexpr Duration recent = std::chrono::seconds(2);

  static Place place_in(const wire::Heartbeat& heartbeat);

  std::map<NodeId, Worker> workers_;
};

}  // namespace syncopate
