#include "membership/liveness.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "telemetry/member_status.hpp"

namespace syncopate {

void Liveness::joined(NodeId node, TimePoint now) {
  lives_.emplace(node, Life{.last_heard = now, .silence = AdaptiveLimit(silence_)});
}

void Liveness::on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now) {
  const auto life = lives_.find(node);
  if (life != lives_.end()) {
    life->second.silence.observed(now - life->second.last_heard);
    life->second.last_heard = now;
    life->second.last = heartbeat;
  }
}

void Liveness::forgive(Duration absence, TimePoint now) {
  for (auto& [node, life] : lives_) {
    life.last_heard = std::min(life.last_heard + absence, now);
  }
}

bool Liveness::is_present(NodeId node) const {
  const auto life = lives_.find(node);
  return life != lives_.end() && life->second.standing == Standing::present;
}

bool Liveness::any_present() const {
  return std::any_of(lives_.begin(), lives_.end(),
                     [](const auto& entry) { return entry.second.standing == Standing::present; });
}

std::vector<NodeId> Liveness::silent(TimePoint now) const {
  std::vector<NodeId> nodes;
  for (const auto& [node, life] : lives_) {
    if (now - life.last_heard > life.silence.limit()) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

std::string Liveness::last_heard(NodeId node, TimePoint now) const {
  const auto life = lives_.find(node);
  return life == lives_.end()
             ? "never heard"
             : fmt::format("last heard {:.1f} s ago", to_seconds(now - life->second.last_heard));
}

std::string Liveness::last_sign(NodeId node, TimePoint now) const {
  const std::string heard = last_heard(node, now);
  const auto life = lives_.find(node);
  if (life == lives_.end()) {
    return heard;
  }
  const wire::Heartbeat& last = life->second.last;
  if (last.program_waits()) {
    return fmt::format("{}, in {} of its program after step {}", heard,
                       program_wait_in(last.program_operation()), last.step());
  }
  return fmt::format("{}, in {} of step {}", heard,
                     last.phase().empty() ? "start-up" : last.phase(), last.step());
}

}  // namespace syncopate
