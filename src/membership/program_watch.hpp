#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// Finds programs whose loops take no step for much longer than usual while another program waits
/// or continues. Such a program tests, reads files or hangs; its heartbeats do not show which. A
/// pure state machine.
///
/// A program is late once it has been outside of a step for max(wait_limit, 20 · its usual time
/// between two steps), and is given up after 20 times as long. If all are late, none counts as
/// late: then all test. Waits in collectives and the time after the end of the loop do not count,
/// nor does time without heartbeats, in which the process was stopped.
///
/// Thread: one.
class LatePrograms {
 public:
  struct Late {
    NodeId node;
    std::uint64_t step = 0;  ///< the last one that it has taken
    Duration outside{};      ///< time outside of a step since then
    Duration left{};         ///< time until it is given up
  };

  explicit LatePrograms(Duration wait_limit) : wait_limit_(wait_limit) {}

  void joined(NodeId worker, TimePoint now);
  /// Has no effect for a node that has not joined.
  void on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now);
  void gone(NodeId node) { programs_.erase(node); }

  /// Returns the late programs to report: each one at once, and then every minute.
  std::vector<Late> take_news();
  std::vector<Late> given_up() const;

 private:
  struct Program {
    TimePoint heard;
    Duration all{};       ///< time in which heartbeats have arrived
    Duration outside{};   ///< time outside of a step, since the last one
    Duration reported{};  ///< `outside` when it was reported last
    std::uint64_t step = 0;
  };

  Duration limit(const Program& program) const;
  bool is_late(const Program& program) const { return program.outside >= limit(program); }
  bool all_are_late() const;
  Late described(NodeId node, const Program& program) const;

  Duration wait_limit_;
  std::map<NodeId, Program> programs_;
};

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
