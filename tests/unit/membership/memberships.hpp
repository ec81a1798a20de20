#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "membership/membership.hpp"

/// Memberships with which tests begin, and functions that read decisions.
namespace syncopate {

inline constexpr TimePoint start{};

inline TimePoint at(double seconds) {
  return start + from_seconds(seconds);
}

inline wire::Join worker(std::uint32_t index, const std::string& agreement = "ssgd") {
  wire::Join join;
  join.set_role(wire::ROLE_WORKER);
  join.set_index(index);
  join.set_host("host");
  join.set_pid(100 + index);
  join.set_machine("machine");
  join.set_agreement(agreement);
  return join;
}

inline wire::Join evaluator() {
  wire::Join join = worker(0);
  join.set_role(wire::ROLE_EVALUATOR);
  return join;
}

/// Returns a membership of workers 0 and 1 and the evaluator, none of which has joined.
inline Membership two_workers() {
  return Membership({.workers = 2, .evaluators = 1}, start);
}

/// The same after all have joined: worker 1 as node 1, the evaluator as 2, worker 0 as 3.
inline Membership gathered() {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1), start);
  membership.joined(NodeId{2}, evaluator(), start);
  membership.joined(NodeId{3}, worker(0), start);
  return membership;
}

inline std::string reason_of(const Decisions& decisions) {
  if (decisions.size() != 1 || !std::holds_alternative<EndJob>(decisions[0])) {
    return "no end of the job";
  }
  return std::get<EndJob>(decisions[0]).abort.reason();
}

inline const Membership::Options all_spared{.workers = 3, .spares_workers = true};
/// Options for workers that synchronize with each other; worker 0 is not spared.
inline const Membership::Options all_but_first{
    .workers = 3, .spares_workers = true, .spares_first = false, .spares_missing = true};

/// Returns a membership of workers 0, 1 and 2 as nodes 1, 2 and 3 and the evaluator as node 4. The
/// workers have reached the first barrier.
inline Membership sparing(const Membership::Options& options = all_spared) {
  Membership membership(options, start);
  for (std::uint32_t index = 0; index < 3; ++index) {
    membership.joined(NodeId{index + 1}, worker(index), start);
  }
  membership.joined(NodeId{4}, evaluator(), start);
  for (std::uint32_t node = 1; node <= 3; ++node) {
    membership.arrived(NodeId{node}, 1);
  }
  return membership;
}

}  // namespace syncopate
