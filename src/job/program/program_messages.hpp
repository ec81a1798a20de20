#pragma once

#include <optional>
#include <span>

#include "data/lease_book.hpp"
#include "job/launch/job_request.hpp"
#include "job/program/loop_site.hpp"
#include "transport/shm/segment.hpp"
#include "transport/transport.hpp"
#include "wire/program.pb.h"

namespace syncopate {

/// What a program trains, as it says it to the coordinator.
struct LoopDefinition {
  GivenOptions options;  ///< `loop_config` takes them
  LoopModel model;

  friend bool operator==(const LoopDefinition&, const LoopDefinition&) = default;
};

wire::Definition to_wire(const LoopDefinition& definition);
LoopDefinition definition_of(const wire::Definition& definition);

wire::LeaseRequest to_wire(const LeaseRequest& request);
/// The rank is that of the program that asks.
LeaseRequest request_of(const wire::LeaseRequest& request, Rank worker);

wire::Lease to_wire(const Lease& lease);
Lease lease_of(const wire::Lease& lease);

wire::Training::SharedMemory to_wire(const shm::SegmentAddress& memory);
/// Errors: ProtocolError.
shm::SegmentAddress address_of(const wire::Training::SharedMemory& memory);

// Both directions travel under the tags of control messages, over a transport of their own.

void post(Transport& transport, const wire::FromProgram& message);
void post(Transport& transport, NodeId program, const wire::ToProgram& message);

/// Errors of both: ProtocolError, for damaged bytes or no body.
wire::FromProgram from_program(std::span<const std::byte> bytes);
wire::ToProgram to_program(std::span<const std::byte> bytes);

}  // namespace syncopate
