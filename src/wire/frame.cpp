#include "wire/frame.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/errors.hpp"

namespace syncopate::wire {
namespace {

constexpr std::uint32_t magic = 0x434e5953;  // "SYNC"

bool is_known(std::uint16_t kind) {
  return kind >= static_cast<std::uint16_t>(FrameKind::hello) &&
         kind <= static_cast<std::uint16_t>(FrameKind::message);
}

}  // namespace

FrameHeaderBytes encode(const FrameHeader& header) {
  FrameHeaderBytes bytes{};
  ByteWriter(bytes)
      .put(magic)
      .put(protocol_version)
      .put(static_cast<std::uint16_t>(header.kind))
      .put(header.tag)
      .put(std::uint32_t{0})
      .put(header.length);
  return bytes;
}

FrameHeader decode_frame_header(std::span<const std::byte, frame_header_bytes> bytes,
                                std::uint64_t limit) {
  ByteReader reader(bytes);
  if (const auto found = reader.take<std::uint32_t>(); found != magic) {
    throw ProtocolError(fmt::format(
        "expected a Syncopate frame (magic {:#010x}), found {:#010x}: not a Syncopate node", magic,
        found));
  }
  if (const auto found = reader.take<std::uint16_t>(); found != protocol_version) {
    throw ProtocolError(
        fmt::format("expected protocol version {}, found {}: run the same Syncopate on every node",
                    protocol_version, found));
  }
  const auto kind = reader.take<std::uint16_t>();
  if (!is_known(kind)) {
    throw ProtocolError(fmt::format("expected a frame kind of 1 to 4, found {}", kind));
  }
  const auto tag = reader.take<std::uint32_t>();
  if (const auto found = reader.take<std::uint32_t>(); found != 0) {
    throw ProtocolError(fmt::format("expected a reserved field of 0, found {:#010x}", found));
  }
  const auto length = reader.take<std::uint64_t>();
  if (length > limit) {
    throw ProtocolError(
        fmt::format("expected a payload of at most {} bytes, found {}", limit, length));
  }
  return {static_cast<FrameKind>(kind), tag, length};
}

}  // namespace syncopate::wire
