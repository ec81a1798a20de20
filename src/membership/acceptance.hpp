#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "wire/control.pb.h"

namespace syncopate {

/// The sender of a control message, as the coordinator knows it.
enum class Sender {
  unknown,       ///< a node that has not joined
  gone,          ///< was refused, has left, or was dropped: its last messages may still arrive
  leader,        ///< worker 0
  worker,        ///< another worker
  first_server,  ///< server 0
  server,        ///< another server
  evaluator,
};

/// The phase of a job: it gathers its members, or has started.
enum class JobPhase { gathering, started };

/// The name of a kind of control message in texts for the user: "evaluation".
std::string_view name_of(wire::ToCoordinator::BodyCase kind);

/// True if the coordinator handles a message of this kind, by the table of acceptance.cpp.
bool is_accepted(wire::ToCoordinator::BodyCase kind, Sender sender, JobPhase phase);

/// Returns what is wrong with the values of a message, or nothing: a duration that no clock can
/// hold, an accuracy above 1, an impossible histogram.
std::optional<std::string> objection_to(const wire::ToCoordinator& message);

}  // namespace syncopate
