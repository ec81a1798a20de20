#include "sim/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace syncopate::sim {
namespace {

/// 0.000050512, exact to the nanosecond.
std::string seconds(TimePoint when) {
  const auto nanoseconds = when.time_since_epoch().count();
  return fmt::format("{}.{:09}", nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000);
}

}  // namespace

std::uint64_t fingerprint(std::span<const std::byte> bytes) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  const auto mix = [](std::uint64_t mixed, std::uint64_t word) {
    return std::rotl((mixed ^ word) * odd, 29);
  };
  std::uint64_t mixed = bytes.size();
  // Four words at a time, which do not wait for each other: every message comes here.
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};
  for (; bytes.size() >= sizeof lanes; bytes = bytes.subspan(sizeof lanes)) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(&words, bytes.data(), sizeof words);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i] = mix(lanes[i], words[i]);
    }
  }
  for (const std::uint64_t lane : lanes) {
    mixed = mix(mixed, lane);
  }
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t taken = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    mixed = mix(mixed, word);
  }
  mixed *= odd;
  return mixed ^ (mixed >> 32);
}

void Trace::message(TimePoint when, const TracedMessage& message) const {
  if (on()) {
    sink_(fmt::format("{} node={} {} peer={} tag={} bytes={} hash={:016x}", seconds(when),
                      message.node.value, message.what, message.peer.value, message.tag.value,
                      message.payload.size(), fingerprint(message.payload)));
  }
}

void Trace::note(TimePoint when, NodeId node, std::string_view what) const {
  if (on()) {
    sink_(fmt::format("{} node={} {}", seconds(when), node.value, what));
  }
}

}  // namespace syncopate::sim
