#include "wire/control.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"
#include "wire/protobuf.hpp"

namespace syncopate::wire {
namespace {

template <class Control>
Control decode(std::span<const std::byte> bytes) {
  Control message;
  from_bytes(bytes, message);
  if (message.body_case() == Control::BODY_NOT_SET) {
    throw ProtocolError(fmt::format("expected a {} with a body, found {} bytes without one",
                                    message.GetTypeName(), bytes.size()));
  }
  return message;
}

}  // namespace

std::vector<std::byte> encode(const ToCoordinator& message) {
  return to_bytes(message);
}

std::vector<std::byte> encode(const FromCoordinator& message) {
  return to_bytes(message);
}

ToCoordinator decode_to_coordinator(std::span<const std::byte> bytes) {
  return decode<ToCoordinator>(bytes);
}

FromCoordinator decode_from_coordinator(std::span<const std::byte> bytes) {
  return decode<FromCoordinator>(bytes);
}

}  // namespace syncopate::wire
