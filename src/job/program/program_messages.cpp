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

wire::LeaseRequest to_wire(const LeaseRequest& request) {
  wire::LeaseRequest message;
  message.set_epoch(request.epoch.value);
  message.set_step_size(request.step_size);
  message.set_trained(request.trained);
  message.set_taken(request.taken.count());
  return message;
}

LeaseRequest request_of(const wire::LeaseRequest& request, Rank worker) {
  return {.worker = worker,
          .epoch = {request.epoch()},
          .step_size = request.step_size(),
          .trained = request.trained(),
          .taken = Duration(request.taken())};
}

wire::Lease to_wire(const Lease& lease) {
  wire::Lease message;
  message.set_epoch(lease.epoch.value);
  message.set_begin(lease.begin);
  message.set_end(lease.end);
  return message;
}

Lease lease_of(const wire::Lease& lease) {
  return {.epoch = {lease.epoch()}, .begin = lease.begin(), .end = lease.end()};
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
