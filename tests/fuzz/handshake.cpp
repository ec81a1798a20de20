#include <algorithm>

#include "tests/fuzz/targets.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::fuzz {

/// The first frame of a stream: its header and, by its kind, what a node reads from it.
void fuzz_handshake(Input input) {
  if (input.size() < wire::frame_header_bytes) {
    return;
  }
  const std::span<const std::byte> bytes = bytes_of(input);
  accept_or_refuse([&] {
    const auto header =
        wire::decode_frame_header(bytes.first<wire::frame_header_bytes>(), wire::handshake_limit);
    require(std::ranges::equal(wire::encode(header), bytes.first<wire::frame_header_bytes>()),
            "a header is written as it was read");
    const auto payload = bytes.subspan(wire::frame_header_bytes);
    accept_or_refuse([&] {
      const auto once = wire::encode_frame(wire::decode_hello(header.kind, payload));
      const auto again = std::span(once).subspan(wire::frame_header_bytes);
      require(wire::encode_frame(wire::decode_hello(header.kind, again)) == once,
              "a Hello is read back");
    });
    accept_or_refuse([&] { wire::decode_answer(header.kind, payload); });
  });
}

}  // namespace syncopate::fuzz
