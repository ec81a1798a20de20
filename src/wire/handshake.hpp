#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wire/frame.hpp"
#include "wire/handshake.pb.h"

namespace syncopate::wire {

/// Compares two tokens, in a time that does not depend on how much of a guess is right.
bool is_same_secret(std::string_view left, std::string_view right);

/// The greatest payload of a frame of the handshake.
inline constexpr std::uint64_t handshake_limit = 4096;

/// Whole frames, header and payload.
std::vector<std::byte> encode_frame(const Hello& message);
std::vector<std::byte> encode_frame(const Welcome& message);
std::vector<std::byte> encode_frame(const Refused& message);

/// The Hello in the payload of a frame of kind `found`. Errors: ProtocolError.
Hello decode_hello(FrameKind found, std::span<const std::byte> payload);

/// The answer to a Hello.
///
/// Errors: ConfigError with the reason, where it is a Refused; ProtocolError, where it is neither
///         that nor a Welcome, or damaged.
Welcome decode_answer(FrameKind found, std::span<const std::byte> payload);

}  // namespace syncopate::wire
