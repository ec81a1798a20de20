#include "scheme/signals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// A signal travels as the number of its round, a u64.
constexpr std::size_t signal_bytes = 8;

Round unpack(const Message& message) {
  if (message.payload.size() != signal_bytes) {
    throw ProtocolError(fmt::format("expected a signal of {} bytes from node {}, found {}",
                                    signal_bytes, message.from.value, message.payload.size()));
  }
  return Round{ByteReader(message.payload).take<std::uint64_t>()};
}

std::optional<Message> next(Transport& transport, TimePoint deadline) {
  try {
    return transport.receive(std::nullopt, tags::round_ends, deadline);
  } catch (const TimedOut&) {
    return std::nullopt;  // there is none
  } catch (const PeerLost&) {
    return std::nullopt;  // it shows where something is awaited of that peer
  }
}

}  // namespace

void Signals::tell(Round round) {
  std::vector<std::byte> bytes(signal_bytes);
  ByteWriter(bytes).put(round.value);
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    group_.transport().post(group_.node(group_.neighbour(step)), tags::round_ends, bytes);
  }
}

Round Signals::heard() {
  Round latest{};
  if (group_.size() == 1) {
    return latest;
  }
  while (const auto message = next(group_.transport(), group_.world().now())) {
    latest = std::max(latest, unpack(*message));
  }
  return latest;
}

Round Signals::await(TimePoint deadline) {
  const auto first = next(group_.transport(), deadline);
  return first ? std::max(unpack(*first), heard()) : Round{};
}

}  // namespace syncopate
