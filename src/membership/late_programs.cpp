#include "membership/late_programs.hpp"

#include <algorithm>
#include <utility>

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

}  // namespace syncopate
