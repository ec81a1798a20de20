#pragma once

#include <exception>

#include "base/time.hpp"
#include "runtime/world.hpp"
#include "transport/transport.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// Asks the coordinator for the description of the job before this node joins: returns the
/// configuration, and the slot that the coordinator keeps for the node.
/// Errors: ConfigError if the coordinator refuses; TimedOut; PeerLost; ProtocolError.
wire::JobDescription enquire(Transport& transport, const wire::Enquire& enquiry,
                             TimePoint deadline);

/// Reports to the coordinator why this node, which has enquired, does not join, and closes the
/// transport.
void decline(World& world, const std::exception& why);

}  // namespace syncopate
