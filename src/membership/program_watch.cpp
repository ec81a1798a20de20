#include "membership/program_watch.hpp"

#include <algorithm>
#include <utility>

#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

/// The longest time between two heartbeats in which a process was not stopped.
constexpr Duration longest_pause = std::chrono::seconds(2);
constexpr Duration news_every = std::chrono::minutes(1);
/// A program is late after this multiple of its usual time between two steps, and is given up after
/// this multiple of that limit.
constexpr int patience = 20;

/// True if the program's loop runs outside of a step and does not wait for other programs.
bool is_outside(const wire::Heartbeat& heartbeat) {
  return heartbeat.program_loop() && heartbeat.computing() && !heartbeat.program_waits() &&
         !heartbeat.program_ended();
}

}  // namespace

void LatePrograms::joined(NodeId worker, TimePoint now) {
  programs_[worker] = {.heard = now};
}

void LatePrograms::on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now) {
  const auto found = programs_.find(node);
  if (found == programs_.end()) {
    return;
  }
  Program& program = found->second;
  const Duration heard =
      std::clamp(now - std::exchange(program.heard, now), Duration::zero(), longest_pause);
  program.all += heard;
  const bool stepped = std::exchange(program.step, heartbeat.step()) != heartbeat.step();
  if (stepped || !is_outside(heartbeat)) {
    program.outside = program.reported = {};
  } else {
    program.outside += heard;
  }
}

/// Counts at least one step: before its first step, a program loads its data.
Duration LatePrograms::limit(const Program& program) const {
  const auto steps = static_cast<Duration::rep>(std::max<std::uint64_t>(1, program.step));
  return std::max(wait_limit_, patience * ((program.all - program.outside) / steps));
}

bool LatePrograms::all_are_late() const {
  return std::ranges::all_of(programs_, [this](const auto& one) { return is_late(one.second); });
}

LatePrograms::Late LatePrograms::described(NodeId node, const Program& program) const {
  return {.node = node,
          .step = program.step,
          .outside = program.outside,
          .left = patience * limit(program) - program.outside};
}

std::vector<LatePrograms::Late> LatePrograms::take_news() {
  std::vector<Late> news;
  for (auto& [node, program] : programs_) {
    const bool is_reported = program.reported > Duration::zero();
    const bool is_due = !is_reported || program.outside >= program.reported + news_every;
    if (is_due && is_late(program) && !all_are_late()) {
      program.reported = program.outside;
      news.push_back(described(node, program));
    }
  }
  return news;
}

std::vector<LatePrograms::Late> LatePrograms::given_up() const {
  std::vector<Late> late;
  for (const auto& [node, program] : programs_) {
    if (program.outside >= patience * limit(program) && !all_are_late()) {
      late.push_back(described(node, program));
    }
  }
  return late;
}

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
