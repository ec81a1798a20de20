#include "scheme/round_signals.hpp"

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
    return std::nullopt;  // no signal has arrived
  } catch (const PeerLost&) {
    return std::nullopt;  // the next collective with that peer reports the failure
  }
}

}  // namespace

void RoundSignals::broadcast(Round round) {
  std::vector<std::byte> bytes(signal_bytes);
  ByteWriter(bytes).put(round.value);
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    group_.transport().post(group_.node(group_.neighbour(step)), tags::round_ends, bytes);
  }
}

Round RoundSignals::poll() {
  Round latest{};
  if (group_.size() == 1) {
    return latest;
  }
  while (const auto message = next(group_.transport(), group_.world().now())) {
    latest = std::max(latest, unpack(*message));
  }
  return latest;
}

Round RoundSignals::wait(TimePoint deadline) {
  const auto first = next(group_.transport(), deadline);
  return first ? std::max(unpack(*first), poll()) : Round{};
}

}  // namespace syncopate
