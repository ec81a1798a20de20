#include "job/program/launchers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "job/launch/job_end.hpp"

namespace syncopate {
namespace {

constexpr std::size_t longest_name = 64;

bool overlap(const ProgramRange& one, const ProgramRange& other) {
  return one.contains(other.first) || other.contains(one.first);
}

}  // namespace

void Launchers::joined(NodeId launcher, const wire::LauncherHello& hello) {
  const ProgramRange range{.first = hello.first(), .count = hello.count()};
  const bool fits = hello.size() == programs_ && range.count > 0 && range.first < programs_ &&
                    range.count <= programs_ - range.first;
  if (!fits) {
    throw ConfigError(
        fmt::format("this job has {} workers; found a launcher of {} from rank {} of {}", programs_,
                    range.count, range.first, hello.size()));
  }
  const auto is_taken = [&](const auto& other) {
    return !other.second.gone && overlap(other.second.programs, range);
  };
  if (overlap(here_, range) || std::ranges::any_of(others_, is_taken)) {
    throw ConfigError(fmt::format(
        "workers from {} to {} are started on another host already; give each host its own --ranks",
        range.first, range.first + range.count - 1));
  }
  others_[launcher] = {.programs = range, .host = excerpt(hello.host(), longest_name)};
}

void Launchers::lost(NodeId launcher) {
  const auto found = others_.find(launcher);
  if (found == others_.end()) {
    return;
  }
  Launcher& lost = found->second;
  lost.gone = true;
  for (std::uint32_t rank = lost.programs.first; lost.programs.contains(rank); ++rank) {
    const bool runs =
        ends_.try_emplace(rank, fmt::format("was lost with `syncopate run` on {}", lost.host))
            .second;
    if (runs) {
      note_failure(rank);
    }
  }
}

void Launchers::note_failure(std::uint32_t rank) {
  if (failure_.empty() && here_.count < programs_) {
    failure_ = fmt::format("worker {} {}", rank, ends_.at(rank));
  }
}

std::vector<std::uint32_t> Launchers::missing() const {
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < programs_; ++rank) {
    const bool has_come = std::ranges::any_of(
        others_, [&](const auto& other) { return other.second.programs.contains(rank); });
    if (!here_.contains(rank) && !has_come) {
      missing.push_back(rank);
    }
  }
  return missing;
}

void Launchers::ended(std::uint32_t rank, int wait_status) {
  ends_[rank] = describe_end(wait_status);
  if (wait_status != 0) {
    note_failure(rank);
  }
}

void Launchers::ended(NodeId launcher, const wire::ProgramEnded& end) {
  const auto found = others_.find(launcher);
  if (found == others_.end() || !found->second.programs.contains(end.rank())) {
    throw ProtocolError(
        fmt::format("node {} reports the end of worker {}, which it has not started",
                    launcher.value, end.rank()));
  }
  ended(end.rank(), end.wait_status());
}

bool Launchers::all_ended() const {
  return all_ended(here_) && std::ranges::all_of(others_, [this](const auto& other) {
           return all_ended(other.second.programs);
         });
}

bool Launchers::all_ended(const ProgramRange& range) const {
  const auto begin = ends_.lower_bound(range.first);
  const auto end = ends_.lower_bound(range.first + range.count);
  return static_cast<std::uint32_t>(std::distance(begin, end)) == range.count;
}

}  // namespace syncopate
