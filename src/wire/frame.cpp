#include "wire/frame.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"

namespace syncopate::wire {
namespace {

constexpr std::uint32_t magic = 0x434e5953;  // "SYNC"

template <class Value>
void put(FrameHeaderBytes& bytes, std::size_t offset, Value value) {
  for (std::size_t index = 0; index < sizeof(Value); ++index) {
    bytes[offset + index] = static_cast<std::byte>(value >> (8 * index));
  }
}

template <class Value>
Value take(std::span<const std::byte, frame_header_bytes> bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t index = 0; index < sizeof(Value); ++index) {
    value |= std::to_integer<std::uint64_t>(bytes[offset + index]) << (8 * index);
  }
  return static_cast<Value>(value);
}

bool is_known(std::uint16_t kind) {
  return kind >= static_cast<std::uint16_t>(FrameKind::hello) &&
         kind <= static_cast<std::uint16_t>(FrameKind::message);
}

}  // namespace

FrameHeaderBytes encode(const FrameHeader& header) {
  FrameHeaderBytes bytes{};
  put(bytes, 0, magic);
  put(bytes, 4, protocol_version);
  put(bytes, 6, static_cast<std::uint16_t>(header.kind));
  put(bytes, 8, header.tag);
  put(bytes, 16, header.length);
  return bytes;
}

FrameHeader decode_frame_header(std::span<const std::byte, frame_header_bytes> bytes,
                                std::uint64_t limit) {
  if (const auto found = take<std::uint32_t>(bytes, 0); found != magic) {
    throw ProtocolError(fmt::format(
        "expected a Syncopate frame (magic {:#010x}), found {:#010x}: not a Syncopate node", magic,
        found));
  }
  if (const auto found = take<std::uint16_t>(bytes, 4); found != protocol_version) {
    throw ProtocolError(
        fmt::format("expected protocol version {}, found {}: run the same Syncopate on every node",
                    protocol_version, found));
  }
  const auto kind = take<std::uint16_t>(bytes, 6);
  if (!is_known(kind)) {
    throw ProtocolError(fmt::format("expected a frame kind of 1 to 4, found {}", kind));
  }
  if (const auto found = take<std::uint32_t>(bytes, 12); found != 0) {
    throw ProtocolError(fmt::format("expected a reserved field of 0, found {:#010x}", found));
  }
  const auto length = take<std::uint64_t>(bytes, 16);
  if (length > limit) {
    throw ProtocolError(
        fmt::format("expected a payload of at most {} bytes, found {}", limit, length));
  }
  return {static_cast<FrameKind>(kind), take<std::uint32_t>(bytes, 8), length};
}

}  // namespace syncopate::wire
