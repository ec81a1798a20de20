#include "wire/handshake.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"
#include "wire/control.hpp"

namespace syncopate::wire {
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
    throw ConfigError(refused.reason());
  }
  expect(FrameKind::welcome, found);
  Welcome welcome;
  from_bytes(payload, welcome);
  return welcome;
}

}  // namespace syncopate::wire
