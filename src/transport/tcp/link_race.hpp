#pragma once

#include <asio/io_context.hpp>
#include <vector>

#include "base/ids.hpp"
#include "transport/tcp/tcp_handshake.hpp"

namespace syncopate::tcp {

/// Dials node `to` at several of its addresses at once, with what `dial` says but for its endpoint,
/// and greets it over the stream that is the first to have carried a probe there and the answer
/// back. So a link with a greater latency or a smaller bandwidth is not taken, nor one that a
/// firewall drops. The other streams end. The engine runs it.
///
/// Errors, in the result: as `dial`; where no stream carries a probe, the error of the first
/// address, and ProtocolError if another node answers there.
std::vector<PendingHandshake> dial_fastest(asio::io_context& io, const Dial& dial,
                                           const Endpoints& addresses, NodeId to,
                                           const Finished& finished);

}  // namespace syncopate::tcp
