#include "wire/control.hpp"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include <limits>

#include "base/errors.hpp"

namespace syncopate::wire {
namespace {

constexpr std::size_t protobuf_limit = std::numeric_limits<int>::max();

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

std::vector<std::byte> to_bytes(const google::protobuf::MessageLite& message) {
  const std::size_t length = message.ByteSizeLong();
  std::vector<std::byte> bytes(length <= protobuf_limit ? length : 0);
  if (length > protobuf_limit ||
      !message.SerializeToArray(bytes.data(), static_cast<int>(length))) {
    throw InternalError(
        fmt::format("cannot write a {} of {} bytes", message.GetTypeName(), length));
  }
  return bytes;
}

void from_bytes(std::span<const std::byte> bytes, google::protobuf::MessageLite& message) {
  const google::protobuf::LogSilencer
      silencer;  // the exception has the message; protobuf would print one also
  if (bytes.size() > protobuf_limit ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw ProtocolError(
        fmt::format("expected a {}, found {} damaged bytes", message.GetTypeName(), bytes.size()));
  }
}

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
