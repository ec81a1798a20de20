#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "transport/transport.hpp"

namespace syncopate::sim {

/// Takes one line of a trace, without its end.
using TraceSink = std::function<void(std::string_view line)>;

/// 64 bits of `bytes`, to distinguish payloads. Not cryptographic.
std::uint64_t fingerprint(std::span<const std::byte> bytes);

/// A message that left `node` for `peer`, or came to `node` from it.
struct TracedMessage {
  NodeId node;
  std::string_view what;  ///< one word
  NodeId peer;
  Tag tag;
  std::span<const std::byte> payload;
};

/// Writes one line for each event of a simulation, in the order of events:
///
///     0.000050512 node=1 deliver peer=0 tag=17 bytes=640 hash=9c1185a5c5e9fc54
///     0.000050512 node=1 lost peer=2 (node 2 was killed)
class Trace {
 public:
  explicit Trace(TraceSink sink) : sink_(std::move(sink)) {}

  void message(TimePoint when, const TracedMessage& message) const;
  /// Writes a line about any other event.
  void note(TimePoint when, NodeId node, std::string_view what) const;

  /// False without a sink: callers then skip the work of making a line.
  bool on() const { return static_cast<bool>(sink_); }

 private:
  TraceSink sink_;
};

}  // namespace syncopate::sim
