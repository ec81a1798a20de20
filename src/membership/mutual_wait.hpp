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

/// Finds programs that wait for each other in vain: the loop of one waits in a collective of its
/// own, in which another one takes no part, since it waits in a step for the first one, or has come
/// to its end and waits there. A pure state machine.
///
/// For as long as the patience every worker must have done nothing but one of the three, and each
/// must have been heard.
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
  /// What a heartbeat says of its program.
  struct Place {
    bool at_end = false;         ///< of its loop; its worker may go on with steps without samples
    bool in_collective = false;  ///< another thread of it may take steps meanwhile, as in an align
    bool in_step = false;
    std::string operation;  ///< the collective that goes on, also where the loop computes; or empty

    Kind kind() const;
  };
  struct Worker {
    Place place;
    TimePoint since;    ///< at this place
    TimePoint stepped;  ///< the last time
    TimePoint heard;
    std::uint64_t step = 0;
    bool glanced = false;  ///< it has just left its wait, as if to look for a signal
  };
  using Entry = std::pair<const NodeId, Worker>;
  /// A heartbeat that is older says nothing of now.
  static constexpr Duration recent = std::chrono::seconds(2);

  static Place place_in(const wire::Heartbeat& heartbeat);
  static bool is_glance(const Worker& worker, const Place& place);
  static bool waits_in_vain(const Entry& in_collective, const Entry& other);
  TimePoint since(const Worker& worker) const;
  bool all_wait(Duration patience, TimePoint now) const;

  std::map<NodeId, Worker> workers_;
};

}  // namespace syncopate
