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

struct NetworkProfile {
  LinkProfile link{};  ///< between any two nodes, unless `set_link` says otherwise
  /// Bytes per second of a node's network card, each way; empty: those of `link`.
  std::optional<double> card_bandwidth{};
  double jitter = 0;  ///< a message's latency is drawn from [latency, latency · (1 + jitter))
};

/// A message on its way.
struct Passage {
  TimePoint sent;        ///< the sender's card is done with it
  TimePoint first_byte;  ///< reaches the receiver's card
  TimePoint last_byte;   ///< reaches the receiver's card
};

/// What the network costs: when each message is sent and when it has arrived.
///
/// A message of B bytes leaves through its sender's card, crosses the link and enters through its
/// receiver's card, all three at the same time, as packets do. Each of the three serves one message
/// after the other, first come, first served, a whole message at a time. Alone it takes
///
///     latency + B / min(link bandwidth, card bandwidth),
///
/// and k messages of k senders, sent at once to one receiver, take latency + k · B / card bandwidth.
/// Messages of one link arrive in the order in which they left, whatever happens to its profile.
class Pricing {
 public:
  Pricing(const NetworkProfile& profile, std::uint64_t seed);

  /// From now on, for messages from `from` to `to`.
  void set_link(NodeId from, NodeId to, const LinkProfile& link);

  /// Books the sender's card and the link for a message handed over now.
  Passage depart(TimePoint now, NodeId from, NodeId to, std::size_t bytes);

  /// Books the receiver's card when the first byte has come: the moment of complete arrival.
  TimePoint arrive(const Passage& passage, NodeId to, std::size_t bytes);

  /// Of the link as it is now, without jitter.
  Duration latency(NodeId from, NodeId to);

  /// When the card of `node` has sent all that was handed to it.
  TimePoint sent_by(NodeId node);

 private:
  struct Card {
    TimePoint outward_free{};
    TimePoint inward_free{};
  };
  struct Link {
    LinkProfile profile;
    TimePoint free{};       ///< when it takes its next message
    TimePoint last_byte{};  ///< of the message before
  };

  Card& card(NodeId node);
  Link& link(NodeId from, NodeId to);
  Duration draw_latency(const LinkProfile& link);

  NetworkProfile profile_;
  double card_bandwidth_;
  Random random_;
  std::vector<Card> cards_;               // by node
  std::vector<std::vector<Link>> links_;  // by sender, then receiver
};

}  // namespace syncopate::sim
