#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <span>
#include <vector>

#include "wire/control.pb.h"

namespace syncopate::wire {

/// `message` as protobuf writes it. Errors: InternalError if it exceeds protobuf's 2 GiB.
std::vector<std::byte> to_bytes(const google::protobuf::MessageLite& message);

/// Reads `bytes` into `message`. Errors: ProtocolError, naming the message's type and the length.
void from_bytes(std::span<const std::byte> bytes, google::protobuf::MessageLite& message);

std::vector<std::byte> encode(const ToCoordinator& message);
std::vector<std::byte> encode(const FromCoordinator& message);

/// Errors: ProtocolError: damaged bytes, or none of the bodies that this version knows.
ToCoordinator decode_to_coordinator(std::span<const std::byte> bytes);

/// Errors: as `decode_to_coordinator`.
FromCoordinator decode_from_coordinator(std::span<const std::byte> bytes);

}  // namespace syncopate::wire
