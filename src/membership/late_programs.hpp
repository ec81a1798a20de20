#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.hpp"

namespace syncopate {

/// Programs whose loops take no step for much longer than usual, while another one waits or goes
/// on: they test, read files or hang, between which their heartbeats show no difference. A pure
/// state machine.
///
/// A program is late once it has been outside of a step for max(wait_limit, 20 · its usual time
/// between two steps), and is given up after 20 times as long. Where all are late, none is: all
/// test. Waits in collectives and the time after the end of the loop do not count, nor does time
/// without heartbeats, in which the process was stopped.
///
/// Thread: one.
class LatePrograms {
 public:
  struct Late {
    NodeId node;
    std::uint64_t step = 0;  ///< that it has taken last
    Duration outside{};      ///< of a step since then
    Duration left{};         ///< until it is given up
  };

  explicit LatePrograms(Duration wait_limit) : wait_limit_(wait_limit) {}

  void joined(NodeId worker, TimePoint now);
  /// Has no effect for a node that has not joined.
  void on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now);
  void gone(NodeId node) { programs_.erase(node); }

  /// The late ones that are to be reported: each at once, and then every minute.
  std::vector<Late> take_news();
  std::vector<Late> given_up() const;

 private:
  struct Program {
    TimePoint heard;
    Duration all{};       ///< in which heartbeats have come
    Duration outside{};   ///< of a step, since the last one
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
