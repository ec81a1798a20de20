#include "wire/wire_frame.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "base/printable.hpp"
#include "wire/control.hpp"

namespace syncopate::wire {
namespace {

constexpr std::uint32_t magic = 0x434e5953;  // "SYNC"

bool is_known(std::uint16_t kind) {
  return kind >= static_cast<std::uint16_t>(FrameKind::hello) &&
         kind <= static_cast<std::uint16_t>(FrameKind::probe);
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
    throw ProtocolError(fmt::format("expected a frame kind of 1 to 5, found {}", kind));
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

namespace {

std::vector<std::byte> frame(FrameKind kind, const google::protobuf::MessageLite& message) {
  const std::vector<std::byte> payload = to_bytes(message);
  const FrameHeaderBytes header = encode(FrameHeader{kind, 0, payload.size()});
  std::vector<std::byte> bytes(header.size() + payload.size());
  std::copy(payload.begin(), payload.end(), std::copy(header.begin(), header.end(), bytes.begin()));
  return bytes;
}

void expect(FrameKind expected, FrameKind found) {
  if (found != expected) {
    throw ProtocolError(fmt::format("expected a frame of kind {} in the handshake, found kind {}",
                                    static_cast<unsigned>(expected), static_cast<unsigned>(found)));
  }
}

}  // namespace

bool is_same_secret(std::string_view left, std::string_view right) {
  unsigned difference = left.size() == right.size() ? 0 : 1;
  for (std::size_t index = 0; index < std::min(left.size(), right.size()); ++index) {
    difference |= static_cast<unsigned char>(left[index] ^ right[index]);
  }
  return difference == 0;
}

std::vector<std::byte> encode_frame(const Hello& message) {
  return frame(FrameKind::hello, message);
}

std::vector<std::byte> encode_frame(const Welcome& message) {
  return frame(FrameKind::welcome, message);
}

std::vector<std::byte> encode_frame(const Refused& message) {
  return frame(FrameKind::refused, message);
}

std::vector<std::byte> probe_frame() {
  std::vector<std::byte> bytes(frame_header_bytes + probe_bytes);
  const FrameHeaderBytes header = encode(FrameHeader{FrameKind::probe, 0, probe_bytes});
  std::copy(header.begin(), header.end(), bytes.begin());
  return bytes;
}

Hello decode_hello(FrameKind found, std::span<const std::byte> payload) {
  expect(FrameKind::hello, found);
  Hello hello;
  from_bytes(payload, hello);
  return hello;
}

Welcome decode_answer(FrameKind found, std::span<const std::byte> payload) {
  if (found == FrameKind::refused) {
    Refused refused;
    from_bytes(payload, refused);
    const std::string reason = printable(refused.reason());
    throw ConfigError(reason.empty() ? "the node refuses the connection without a reason" : reason);
  }
  expect(FrameKind::welcome, found);
  Welcome welcome;
  from_bytes(payload, welcome);
  return welcome;
}

}  // namespace syncopate::wire
