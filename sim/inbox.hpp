#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/sim_node.hpp"
#include "transport/transport.hpp"

namespace syncopate::sim {

/// A receive that a node has begun.
struct Receive {
  std::optional<NodeId> from;  ///< empty: anyone
  Tag tag;
  std::optional<std::span<std::byte>> into;  ///< empty: into `message`
  Message message{};                         ///< the received message
  Completion completion{};
};

/// Matches the messages of a node to its receives. It knows neither time nor network.
///
/// Order:     a message goes to the first receive posted that it matches; a receive gets the first
///            message arrived that it matches, and learns of a loss when no message is left for it.
/// Losses:    a receive from a lost peer ends with PeerLost. For each lost peer, one receive from
///            anyone, under any tag, ends with PeerLost as well.
/// Invariant: no posted receive matches a message that is kept.
class Inbox {
 public:
  /// Called when a message has arrived.
  void arrive(Message message);
  /// Begins a receive, which must live until it has ended or is withdrawn.
  void post(Receive& receive);
  /// Forgets a receive. Has no effect on one that has ended.
  void withdraw(Receive& receive);
  /// Called once per peer, when nothing more comes from it; `why` is the text of the errors.
  void lose(NodeId peer, const std::string& why);
  /// Ends every receive with `error` and drops every message.
  void cancel(const std::exception_ptr& error);

 private:
  /// Everything under one tag.
  struct Box {
    std::deque<Message> messages;   // in the order of arrival
    std::deque<Receive*> receives;  // in the order of posting
  };
  struct Loss {
    NodeId peer;
    std::string why;
  };

  bool serve(Box& box, Receive& receive);
  const Loss* loss_for(const Receive& receive);

  std::map<Tag, Box> boxes_;
  std::vector<Loss> losses_;         // in the order in which they became known
  std::size_t losses_reported_ = 0;  // to receives from anyone
};

}  // namespace syncopate::sim
