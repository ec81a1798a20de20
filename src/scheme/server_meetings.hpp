#pragma once

#include "scheme/scheme.hpp"
#include "server/messages.hpp"

namespace syncopate {

/// Turns the replies of a parameter server into meetings: what the job has done since the last one.
class ServerRounds {
 public:
  /// `start`: what the server said when this worker began.
  explicit ServerRounds(const Reply& start) : last_(start) {}

  SyncRound next(const Reply& reply, const StepRequests& requests);

 private:
  Reply last_;
};

}  // namespace syncopate
