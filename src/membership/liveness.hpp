#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "runtime/waits.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// The heartbeats of a job's members: which members are present, and which are silent. A pure state
/// machine.
///
/// Order:  heartbeats in the order of their arrival.
/// Thread: one.
class Liveness {
 public:
  enum class Standing { present, left, dropped };

  explicit Liveness(const AdaptiveLimit::Options& silence) : silence_(silence) {}

  /// The node is present from now on.
  void joined(NodeId node, TimePoint now);
  /// Has no effect for a node that has not joined.
  void on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now);
  /// The listener was absent for this long: this time does not count as silence.
  void forgive(Duration absence, TimePoint now);
  /// A node that has joined is no longer present.
  void gone(NodeId node, Standing standing) { lives_.at(node).standing = standing; }

  /// True if the node has joined, and neither left nor been dropped.
  bool is_present(NodeId node) const;
  bool was_dropped(NodeId node) const { return lives_.at(node).standing == Standing::dropped; }
  bool any_present() const;
  /// The nodes that have joined and sent no heartbeat for longer than is usual for them.
  std::vector<NodeId> silent(TimePoint now) const;
  /// "last heard 1.2 s ago, in backward of step 812", or "never heard".
  std::string last_sign(NodeId node, TimePoint now) const;

 private:
  struct Life {
    TimePoint last_heard;
    AdaptiveLimit silence;
    wire::Heartbeat last{};
    Standing standing = Standing::present;
  };

  AdaptiveLimit::Options silence_;
  std::map<NodeId, Life> lives_;
};

}  // namespace syncopate
