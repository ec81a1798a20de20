#pragma once

#include <asio/io_context.hpp>
#include <exception>
#include <functional>
#include <vector>

#include "base/ids.hpp"
#include "transport/tcp/tcp_handshake.hpp"

namespace syncopate::tcp {

/// A node that listens at several addresses, and how one of them is chosen.
struct LinkRace {
  Endpoints addresses;
  NodeId to;
  /// The first stream that has carried a probe there and the answer back is taken, so none of a
  /// greater latency or a smaller bandwidth; else the first on which the node answers.
  bool probes;
  Finished finished;  ///< as that of `dial`, of the stream that is taken
  /// No stream is taken: the error of the first address, as those of `dial`; ProtocolError if
  /// another node answers there; TimedOut, with probes after two seconds.
  std::function<void(std::exception_ptr)> undecided;
};

/// Dials all addresses at once, with what `dial` says but for its endpoint, and greets the node
/// over the stream that is taken. The others end. The engine runs it.
std::vector<PendingHandshake> run_race(asio::io_context& io, const Dial& dial,
                                       const LinkRace& race);

}  // namespace syncopate::tcp
