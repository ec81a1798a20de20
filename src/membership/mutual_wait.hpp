#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// Finds programs that wait for each other forever: the loop of one program waits in a collective
/// in which another program takes no part, because that one waits for the first in a step or at the
/// end of its loop. A pure state machine.
///
/// It reports such a pair only if every worker has waited in a collective, in a step or at its end
/// for as long as the patience, and has sent a heartbeat recently.
///
/// Order:  heartbeats in the order of their arrival.
/// Thread: one.
class MutualWait {
 public:
  struct Found {
    NodeId in_collective;
    std::string operation;  ///< in words
    NodeId elsewhere;       ///< in a step, or at its end
    bool at_end = false;
    std::uint64_t step = 0;  ///< of `elsewhere`
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
  enum class Kind { elsewhere, step, collective, end };
  /// The state of a program, by a heartbeat.
  struct Place {
    bool at_end = false;         ///< of its loop; its worker may still take steps without samples
    bool in_collective = false;  ///< another thread may take steps meanwhile, as in an align
    bool in_step = false;
    std::string operation;  ///< the collective under way, even while the loop computes; or empty

    Kind kind() const;
  };
  struct Worker {
    Place place;
    TimePoint since;    ///< when it came to this place
    TimePoint stepped;  ///< when it took its last step
    TimePoint heard;
    std::uint64_t step = 0;
    bool glanced = false;  ///< it has just left its wait, perhaps to check for a signal
  };
  using Entry = std::pair<const NodeId, Worker>;
  /// An older heartbeat says nothing about the present.
  static constexpr Duration recent = std::chrono::seconds(2);

  static Place place_in(const wire::Heartbeat& heartbeat);
  static bool is_glance(const Worker& worker, const Place& place);
  static bool waits_in_vain(const Entry& in_collective, const Entry& other);
  TimePoint since(const Worker& worker) const;
  bool all_wait(Duration patience, TimePoint now) const;

  std::map<NodeId, Worker> workers_;
};

}  // namespace syncopate
