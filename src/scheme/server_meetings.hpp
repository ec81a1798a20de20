#pragma once

#include "scheme/scheme.hpp"
#include "server/messages.hpp"

namespace syncopate {

/// Turns the replies of a parameter server into meetings: what the job has done since the last one.
class ServerMeetings {
 public:
  /// `start`: what the server said when this worker began.
  explicit ServerMeetings(const Reply& start) : last_(start) {}

  Meeting next(const Reply& reply, const StepRequests& requests);

 private:
  Reply last_;
};

}  // namespace syncopate
