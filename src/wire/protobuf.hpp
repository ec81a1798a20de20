#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <span>
#include <vector>

namespace syncopate::wire {

/// `message` as protobuf writes it. Errors: InternalError, where it exceeds protobuf's 2 GiB.
std::vector<std::byte> to_bytes(const google::protobuf::MessageLite& message);

/// Reads `bytes` into `message`. Errors: ProtocolError, naming the message's type and the length.
void from_bytes(std::span<const std::byte> bytes, google::protobuf::MessageLite& message);

}  // namespace syncopate::wire
