#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.hpp"

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

}  // namespace syncopate
