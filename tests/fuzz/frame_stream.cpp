#include <algorithm>
#include <asio/buffer.hpp>

#include "tests/fuzz/targets.hpp"
#include "transport/tcp/frame_reader.hpp"

namespace syncopate::fuzz {

/// The stream of a peer after its handshake, to a worker or, by the lowest bit of the first byte,
/// to the coordinator. The other bits are the bytes that arrive at a time.
void fuzz_frame_stream(Input input) {
  const std::uint8_t choice = take_byte(input);
  const bool to_coordinator = choice % 2 == 1;
  const std::size_t piece = 1 + choice / 2;
  mail::Mailbox mailbox(1 << 20, [](NodeId) {});
  tcp::FrameReader reader(NodeId{1}, mailbox,
                          {.self = to_coordinator ? coordinator_node : NodeId{2},
                           .message_bytes = 1 << 20,
                           .control_only = to_coordinator});
  std::span<const std::byte> bytes = bytes_of(input);
  accept_or_refuse([&] {
    while (!bytes.empty()) {
      const auto space = reader.space();
      const std::size_t taken =
          asio::buffer_copy(space, asio::buffer(bytes.data(), std::min(piece, bytes.size())));
      require(taken > 0, "a reader has room for the next bytes");
      reader.received(taken);
      bytes = bytes.subspan(taken);
    }
  });
}

}  // namespace syncopate::fuzz
