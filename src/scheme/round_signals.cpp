#include "scheme/round_signals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/errors.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

Round unpack(const Message& message) {
  Round round;
  if (message.payload.size() != sizeof(round.value)) {
    throw ProtocolError(fmt::format("expected a signal of {} bytes from node {}, found {}",
                                    sizeof(round.value), message.from.value,
                                    message.payload.size()));
  }
  std::memcpy(&round.value, message.payload.data(), sizeof(round.value));
  return round;
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
  const auto bytes = std::as_bytes(std::span(&round.value, 1));
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    group_.transport().post(group_.node(group_.neighbour(step)), tags::round_ends,
                            {bytes.begin(), bytes.end()});
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
