#include "membership/mutual_wait.hpp"

#include <algorithm>

#include "telemetry/member_status.hpp"

namespace syncopate {

MutualWait::Place MutualWait::place_in(const wire::Heartbeat& heartbeat) {
  if (heartbeat.computing()) {  // the loop has its turn
    return heartbeat.program_waits() ? Place::collective : Place::elsewhere;
  }
  return heartbeat.waiting() || heartbeat.standing_by() ? Place::step : Place::elsewhere;
}

void MutualWait::joined(NodeId worker, TimePoint now) {
  workers_[worker] = {.since = now, .heard = now, .operation = {}};
}

void MutualWait::on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now) {
  const auto found = workers_.find(node);
  if (found == workers_.end()) {
    return;
  }
  Worker& worker = found->second;
  const Place place = place_in(heartbeat);
  if (place != worker.place || heartbeat.step() != worker.step) {
    worker.since = now;
  }
  worker.place = place;
  worker.heard = now;
  worker.step = heartbeat.step();
  worker.operation = heartbeat.program_operation();
}

void MutualWait::forgive(Duration absence, TimePoint now) {
  for (auto& [node, worker] : workers_) {
    worker.since = std::min(worker.since + absence, now);
  }
}

/// Another thread of a program may carry out the collective beside the step of its loop.
std::optional<MutualWait::Found> MutualWait::found(Duration patience, TimePoint now) const {
  const auto first = std::ranges::find_if(
      workers_, [](const auto& entry) { return entry.second.place == Place::collective; });
  const auto other = std::ranges::find_if(workers_, [&](const auto& entry) {
    const Worker& worker = entry.second;
    return first != workers_.end() && worker.place == Place::step &&
           (worker.operation.empty() || worker.operation != first->second.operation);
  });
  const bool all_wait = std::ranges::all_of(workers_, [&](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.place != Place::elsewhere && now - worker.since >= patience &&
           now - worker.heard <= recent;
  });
  if (!all_wait || first == workers_.end() || other == workers_.end()) {
    return std::nullopt;
  }
  return Found{.in_collective = first->first,
               .operation = program_wait_in(first->second.operation),
               .in_step = other->first,
               .step = other->second.step,
               .waited = now - std::max(first->second.since, other->second.since)};
}

}  // namespace syncopate
