#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wire/handshake.pb.h"

namespace syncopate::wire {

/// The content of a frame.
enum class FrameKind : std::uint16_t {
  hello = 1,    ///< `wire::Hello`
  welcome = 2,  ///< `wire::Welcome`
  refused = 3,  ///< `wire::Refused`
  message = 4,  ///< a tagged message between nodes, raw
  probe = 5,    ///< `probe_bytes` of any value, to measure a stream
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

inline constexpr std::uint16_t protocol_version = 3;
inline constexpr std::size_t frame_header_bytes = 24;

using FrameHeaderBytes = std::array<std::byte, frame_header_bytes>;

FrameHeaderBytes encode(const FrameHeader& header);

/// Errors: ProtocolError, which names the expected and the found value: another magic or version,
/// an unknown kind, a payload of more than `limit` bytes, a reserved field that is not zero.
FrameHeader decode_frame_header(std::span<const std::byte, frame_header_bytes> bytes,
                                std::uint64_t limit);

/// Compares two tokens, in a time that does not depend on how much of a guess is right.
bool is_same_secret(std::string_view left, std::string_view right);

/// The greatest payload of a frame of the handshake.
inline constexpr std::uint64_t handshake_limit = 4096;
/// The payload of a probe: 2 ms at 1 Gbit/s, so that of two links the faster one shows.
inline constexpr std::uint64_t probe_bytes = 256 * 1024;

/// Whole frames, header and payload.
std::vector<std::byte> encode_frame(const Hello& message);
std::vector<std::byte> encode_frame(const Welcome& message);
std::vector<std::byte> encode_frame(const Refused& message);
std::vector<std::byte> probe_frame();

/// The Hello in the payload of a frame of kind `found`. Errors: ProtocolError.
Hello decode_hello(FrameKind found, std::span<const std::byte> payload);

/// The answer to a Hello.
///
/// Errors: ConfigError with the reason if it is a Refused; ProtocolError if it is neither that nor
///         a Welcome, or damaged.
Welcome decode_answer(FrameKind found, std::span<const std::byte> payload);

}  // namespace syncopate::wire
