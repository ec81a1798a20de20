#include "job/program/program_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "transport/tags.hpp"
#include "wire/control.hpp"

namespace syncopate {
namespace {

template <class Message>
Message message_in(std::span<const std::byte> bytes) {
  Message message;
  wire::from_bytes(bytes, message);
  if (message.body_case() == Message::BODY_NOT_SET) {
    throw ProtocolError(fmt::format("expected a {} with a body, found {} bytes without one",
                                    message.GetTypeName(), bytes.size()));
  }
  return message;
}

}  // namespace

wire::Definition to_wire(const LoopDefinition& definition) {
  wire::Definition message;
  for (const auto& [name, text] : definition.options) {
    (*message.mutable_options())[name] = text;
  }
  message.set_parameters(definition.model.parameters);
  message.set_buffers(definition.model.buffers);
  message.set_samples(definition.model.samples);
  return message;
}

LoopDefinition definition_of(const wire::Definition& definition) {
  GivenOptions options;
  for (const auto& option : definition.options()) {
    options.emplace(option.first, option.second);
  }
  return {.options = std::move(options),
          .model = {.parameters = definition.parameters(),
                    .buffers = definition.buffers(),
                    .samples = definition.samples()}};
}

wire::Training::SharedMemory to_wire(const shm::SegmentAddress& memory) {
  wire::Training::SharedMemory message;
  message.set_machine(memory.machine);
  message.set_pid(memory.pid);
  message.set_number(memory.descriptor);
  for (const std::uint64_t part : memory.secret) {
    message.add_secret(part);
  }
  return message;
}

shm::SegmentAddress address_of(const wire::Training::SharedMemory& memory) {
  shm::SegmentAddress address{
      .machine = memory.machine(), .pid = memory.pid(), .descriptor = memory.number()};
  if (static_cast<std::size_t>(memory.secret_size()) != address.secret.size()) {
    throw ProtocolError("the coordinator sent an address of shared memory without its secret");
  }
  std::copy(memory.secret().begin(), memory.secret().end(), address.secret.begin());
  return address;
}

void post(Transport& transport, const wire::FromProgram& message) {
  transport.post(coordinator_node, tags::to_coordinator, wire::to_bytes(message));
}

void post(Transport& transport, NodeId program, const wire::ToProgram& message) {
  transport.post(program, tags::from_coordinator, wire::to_bytes(message));
}

wire::FromProgram from_program(std::span<const std::byte> bytes) {
  return message_in<wire::FromProgram>(bytes);
}

wire::ToProgram to_program(std::span<const std::byte> bytes) {
  return message_in<wire::ToProgram>(bytes);
}

}  // namespace syncopate
