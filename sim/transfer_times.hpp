#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "device/cluster_file.hpp"

namespace syncopate::sim {

/// The element of a node. The first access makes it, as a copy of `fresh`.
template <class Value>
Value& at_node(std::vector<Value>& values, NodeId node, const Value& fresh) {
  if (values.size() <= node.value) {
    values.resize(node.value + 1, fresh);
  }
  return values[node.value];
}

struct NetworkProfile {
  LinkProfile link{};  ///< between any two nodes, unless `set_link` says otherwise
  /// Bytes per second of a node's network card, each way; empty: those of `link`.
  std::optional<double> nic_bandwidth{};
  double jitter = 0;  ///< a message's latency is drawn from [latency, latency · (1 + jitter))
};

/// A message on its way.
struct Passage {
  TimePoint sent;        ///< the sender's network card is done with it
  TimePoint first_byte;  ///< reaches the receiver's network card
  TimePoint last_byte;   ///< reaches the receiver's network card
};

/// The cost model of the network: when each message is sent and when it has arrived.
///
/// A message of B bytes passes the sender's network card, the link and the receiver's network card,
/// all three at the same time, as packets do. Each of the three serves whole messages, one after
/// another, first come, first served. A message alone takes
///
///     latency + B / min(link bandwidth, network card bandwidth),
///
/// and k messages of k senders, sent at once to one receiver, take
/// latency + k · B / network card bandwidth.
/// Messages of one link arrive in the order in which they left, even when its profile changes.
class TransferTimes {
 public:
  TransferTimes(const NetworkProfile& profile, std::uint64_t seed);

  /// Sets the profile for messages from `from` to `to`, from now on.
  void set_link(NodeId from, NodeId to, const LinkProfile& link);

  /// Books the sender's network card and the link for a message that is sent now.
  Passage depart(TimePoint now, NodeId from, NodeId to, std::size_t bytes);

  /// Books the receiver's network card when the first byte has come. Returns the time at which the
  /// whole message has arrived.
  TimePoint arrive(const Passage& passage, NodeId to, std::size_t bytes);

  /// The latency of the link as it is now, without jitter.
  Duration latency(NodeId from, NodeId to);

  /// The time at which the network card of `node` has sent all messages so far.
  TimePoint sent_by(NodeId node);

 private:
  struct Nic {
    TimePoint outward_free{};
    TimePoint inward_free{};
  };
  struct Link {
    LinkProfile profile;
    TimePoint free{};       ///< when it takes its next message
    TimePoint last_byte{};  ///< when that of the previous message arrives
  };

  Nic& nic(NodeId node);
  Link& link(NodeId from, NodeId to);
  Duration draw_latency(const LinkProfile& link);

  NetworkProfile profile_;
  double nic_bandwidth_;
  Random random_;
  std::vector<Nic> nics_;                 // by node
  std::vector<std::vector<Link>> links_;  // by sender, then receiver
};

}  // namespace syncopate::sim
