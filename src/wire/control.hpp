#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "wire/control.pb.h"

namespace syncopate::wire {

std::vector<std::byte> encode(const ToCoordinator& message);
std::vector<std::byte> encode(const FromCoordinator& message);

/// Errors: ProtocolError: damaged bytes, or none of the bodies that this version knows.
ToCoordinator decode_to_coordinator(std::span<const std::byte> bytes);

/// Errors: as `decode_to_coordinator`.
FromCoordinator decode_from_coordinator(std::span<const std::byte> bytes);

}  // namespace syncopate::wire
