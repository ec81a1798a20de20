#include "membership/mutual_wait.hpp"

#include <algorithm>

#include "telemetry/member_status.hpp"

namespace syncopate {

/// A collective that another thread of the program carries out may go on beside a step.
MutualWait::Place MutualWait::place_in(const wire::Heartbeat& heartbeat) {
  if (heartbeat.computing()) {  // the loop has its turn
    return heartbeat.program_waits() ? Place::collective : Place::elsewhere;
  }
  const bool waits = heartbeat.waiting() || heartbeat.standing_by();
  return waits && heartbeat.program_operation().empty() ? Place::step : Place::elsewhere;
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
  worker.operation = program_wait_in(heartbeat);
}

void MutualWait::forgive(Duration absence, TimePoint now) {
  for (auto& [node, worker] : workers_) {
    worker.since = std::min(worker.since + absence, now);
  }
}

std::optional<MutualWait::Found> MutualWait::found(Duration patience, TimePoint now) const {
  const auto at = [this](Place place) {
    return std::ranges::find_if(workers_,
                                [&](const auto& entry) { return entry.second.place == place; });
  };
  const auto first = at(Place::collective);
  const auto other = at(Place::step);
  const bool all_wait = std::ranges::all_of(workers_, [&](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.place != Place::elsewhere && now - worker.since >= patience &&
           now - worker.heard <= recent;
  });
  if (!all_wait || first == workers_.end() || other == workers_.end()) {
    return std::nullopt;
  }
  return Found{.in_collective = first->first,
               .operation = first->second.operation,
               .in_step = other->first,
               .step = other->second.step,
               .waited = now - std::max(first->second.since, other->second.since)};
}

}  // namespace syncopate
