#include "membership/acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "base/errors.hpp"
#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

using Body = wire::ToCoordinator;

/// A set of senders, one bit each.
using Senders = std::uint32_t;

constexpr Senders bit(Sender sender) {
  return Senders{1} << static_cast<Senders>(sender);
}

constexpr Senders any_of(std::initializer_list<Sender> senders) {
  Senders all = 0;
  for (const Sender sender : senders) {
    all |= bit(sender);
  }
  return all;
}

constexpr Senders nobody = 0;
constexpr Senders unknowns = bit(Sender::unknown);
constexpr Senders workers = any_of({Sender::leader, Sender::worker});
constexpr Senders servers = any_of({Sender::first_server, Sender::server});
constexpr Senders evaluators = bit(Sender::evaluator);
constexpr Senders members = workers | servers | evaluators;

struct Row {
  Body::BodyCase kind;
  std::string_view name;
  Senders gathering;
  Senders started;
};

constexpr auto table = std::to_array<Row>({
    {Body::kEnquire, "enquiry", unknowns, unknowns},
    {Body::kJoin, "join", unknowns, unknowns},
    {Body::kHeartbeat, "heartbeat", members, members},
    {Body::kAbort, "failure", unknowns | members, unknowns | members},
    {Body::kArrived, "arrival", nobody, members},
    {Body::kMissing, "report of a wait", nobody, members},
    {Body::kStepped, "step report", nobody, workers},
    {Body::kComplete, "completion", nobody, workers | bit(Sender::first_server)},
    {Body::kEvaluation, "evaluation", nobody, evaluators},
    // The leader sends it, or the first server if a server keeps the model.
    {Body::kCheckpoint, "checkpoint", nobody, any_of({Sender::leader, Sender::first_server})},
    {Body::kRejected, "rejection", nobody, servers},
    {Body::kLeave, "departure", nobody, members},
});

const Row* row_of(Body::BodyCase kind) {
  const auto* const found =
      std::find_if(table.begin(), table.end(), [&](const Row& row) { return row.kind == kind; });
  return found == table.end() ? nullptr : found;
}

/// The longest time that a clock of nanoseconds can hold, with room for sums.
constexpr double longest_seconds = 4e9;

std::optional<std::string> objection_to_times(std::initializer_list<double> all) {
  for (const double seconds : all) {
    if (!(seconds >= 0 && seconds <= longest_seconds)) {
      return fmt::format("expected 0 to {:g} s, found {:g} s", longest_seconds, seconds);
    }
  }
  return std::nullopt;
}

std::optional<std::string> objection_to_status(const wire::Heartbeat& heartbeat) {
  try {
    from_wire(heartbeat.staleness());
    from_wire(heartbeat.queue_length());
  } catch (const ProtocolError& error) {
    return error.what();
  }
  return std::nullopt;
}

std::optional<std::string> objection_to_result(const wire::Evaluation& evaluation) {
  if (evaluation.accuracy() < 0 || evaluation.accuracy() > 1) {  // not a number: no test samples
    return fmt::format("expected an accuracy from 0 to 1, found {:g}", evaluation.accuracy());
  }
  if (!(evaluation.epoch() >= 0 && std::isfinite(evaluation.epoch()))) {
    return fmt::format("expected an epoch from 0 up, found {:g}", evaluation.epoch());
  }
  return objection_to_times({evaluation.training_seconds(), evaluation.evaluation_seconds()});
}

}  // namespace

std::string_view name_of(wire::ToCoordinator::BodyCase kind) {
  const Row* const row = row_of(kind);
  return row == nullptr ? "message of an unknown kind" : row->name;
}

bool is_accepted(wire::ToCoordinator::BodyCase kind, Sender sender, JobPhase phase) {
  const Row* const row = row_of(kind);
  return row != nullptr &&
         ((phase == JobPhase::gathering ? row->gathering : row->started) & bit(sender)) != 0;
}

std::optional<std::string> objection_to(const wire::ToCoordinator& message) {
  switch (message.body_case()) {
    case Body::kHeartbeat: return objection_to_status(message.heartbeat());
    case Body::kLeave: return objection_to_status(message.leave().last());
    case Body::kEvaluation: return objection_to_result(message.evaluation());
    case Body::kJoin:
      return objection_to_times({message.join().step_cost(), message.join().step_budget()});
    case Body::kMissing:
      return objection_to_times(
          {message.missing().waited_seconds(), message.missing().limit_seconds()});
    case Body::kStepped:
      return objection_to_times(
          {message.stepped().seconds(), message.stepped().communicated_seconds()});
    default: return std::nullopt;
  }
}

}  // namespace syncopate
