#include "membership/mutual_wait.hpp"

#include <algorithm>
#include <utility>

#include "telemetry/member_status.hpp"

namespace syncopate {

MutualWait::Place MutualWait::place_in(const wire::Heartbeat& heartbeat) {
  const bool has_turn = heartbeat.computing();  // the loop
  return {.at_end = heartbeat.program_ended(),
          .in_collective = heartbeat.program_waits(),
          .in_step = !has_turn && (heartbeat.waiting() || heartbeat.standing_by()),
          .operation = heartbeat.program_operation()};
}

MutualWait::Kind MutualWait::Place::kind() const {
  if (at_end) {
    return Kind::end;
  }
  if (in_collective) {
    return Kind::collective;
  }
  return in_step ? Kind::step : Kind::elsewhere;
}

/// True if a loop has left its wait only for a moment, for example to check for Ctrl-C: its program
/// is still in the same operation.
bool MutualWait::is_glance(const Worker& worker, const Place& place) {
  return worker.place.in_collective && !place.in_collective && !worker.glanced && !place.at_end &&
         !place.operation.empty() && place.operation == worker.place.operation;
}

void MutualWait::joined(NodeId worker, TimePoint now) {
  workers_[worker] = {.place = {}, .since = now, .stepped = now, .heard = now};
}

void MutualWait::on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now) {
  const auto found = workers_.find(node);
  if (found == workers_.end()) {
    return;
  }
  Worker& worker = found->second;
  worker.heard = now;
  if (std::exchange(worker.step, heartbeat.step()) != heartbeat.step()) {
    worker.stepped = now;
  }
  Place place = place_in(heartbeat);
  if (is_glance(worker, place)) {
    worker.glanced = true;
    return;
  }
  worker.glanced = false;
  if (place.kind() != worker.place.kind()) {
    worker.since = now;
  }
  worker.place = std::move(place);
}

void MutualWait::forgive(Duration absence, TimePoint now) {
  for (auto& [node, worker] : workers_) {
    worker.since = std::min(worker.since + absence, now);
    worker.stepped = std::min(worker.stepped + absence, now);
  }
}

/// A program may carry out the collective in another thread, in parallel to the step of its loop.
bool MutualWait::waits_in_vain(const Entry& in_collective, const Entry& other) {
  const Place& one = in_collective.second.place;
  const Place& place = other.second.place;
  return in_collective.first != other.first && one.in_collective &&
         (place.at_end || (place.in_step && !one.in_step)) &&
         (place.operation.empty() || place.operation != one.operation);
}

/// Returns the time from which the worker's wait counts. If any worker waits in a step, each step
/// of this worker restarts its wait, because that step could release the other one. Steps without
/// samples, which a worker takes in an align or at its end, release no worker from a collective.
TimePoint MutualWait::since(const Worker& worker) const {
  const bool one_in_step = std::ranges::any_of(
      workers_, [](const Entry& entry) { return entry.second.place.kind() == Kind::step; });
  return one_in_step ? std::max(worker.since, worker.stepped) : worker.since;
}

bool MutualWait::all_wait(Duration patience, TimePoint now) const {
  return std::ranges::all_of(workers_, [&](const Entry& entry) {
    const Worker& worker = entry.second;
    return worker.place.kind() != Kind::elsewhere && now - since(worker) >= patience &&
           now - worker.heard <= recent;
  });
}

std::optional<MutualWait::Found> MutualWait::found(Duration patience, TimePoint now) const {
  if (!all_wait(patience, now)) {
    return std::nullopt;
  }
  for (const Entry& one : workers_) {
    const auto other = std::ranges::find_if(
        workers_, [&](const Entry& entry) { return waits_in_vain(one, entry); });
    if (other != workers_.end()) {
      const Worker& elsewhere = other->second;
      return Found{.in_collective = one.first,
                   .operation = program_wait_in(one.second.place.operation),
                   .elsewhere = other->first,
                   .at_end = elsewhere.place.at_end,
                   .step = elsewhere.step,
                   .waited = now - std::max(since(one.second), since(elsewhere))};
    }
  }
  return std::nullopt;
}

}  // namespace syncopate
