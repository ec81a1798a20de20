#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "wire/control.pb.h"

namespace syncopate {

/// The sender of a control message, as the coordinator knows it.
enum class Sender {
  unknown,       ///< a node that has not joined
  gone,          ///< was refused, has left, or was dropped: its last messages may still come
  leader,        ///< worker 0
  worker,        ///< another worker
  first_server,  ///< server 0
  server,        ///< another server
  evaluator,
};

/// Whether a job still gathers its members.
enum class JobPhase { gathering, started };

/// "evaluation", as messages for people name a kind of control message.
std::string_view name_of(wire::ToCoordinator::BodyCase kind);

/// Whether the coordinator handles a message of this kind, by the table of acceptance.cpp.
bool is_accepted(wire::ToCoordinator::BodyCase kind, Sender sender, JobPhase phase);

/// What is wrong with the values of a message, or empty: a duration that no clock can hold, an
/// accuracy above 1, a histogram that cannot be.
std::optional<std::string> objection_to(const wire::ToCoordinator& message);

}  // namespace syncopate
