#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace syncopate::wire {

/// The content of a frame.
enum class FrameKind : std::uint16_t {
  hello = 1,    ///< `wire::Hello`
  welcome = 2,  ///< `wire::Welcome`
  refused = 3,  ///< `wire::Refused`
  message = 4,  ///< a tagged message between nodes, raw
};

/// The head of every frame on a stream; `length` bytes of payload follow it.
///
/// 24 bytes, little-endian on every machine:
///
///     offset  0  u32  magic, the letters SYNC
///     offset  4  u16  protocol version
///     offset  6  u16  kind
///     offset  8  u32  tag; 0 unless kind is `message`
///     offset 12  u32  zero
///     offset 16  u64  length of the payload in bytes
struct FrameHeader {
  FrameKind kind = FrameKind::message;
  std::uint32_t tag = 0;
  std::uint64_t length = 0;

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

inline constexpr std::uint16_t protocol_version = 1;
inline constexpr std::size_t frame_header_bytes = 24;

using FrameHeaderBytes = std::array<std::byte, frame_header_bytes>;

FrameHeaderBytes encode(const FrameHeader& header);

/// Errors: ProtocolError, which names the expected and the found value: another magic or version,
/// an unknown kind, a payload of more than `limit` bytes, a reserved field that is not zero.
FrameHeader decode_frame_header(std::span<const std::byte, frame_header_bytes> bytes,
                                std::uint64_t limit);

}  // namespace syncopate::wire
