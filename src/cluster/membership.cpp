#include "cluster/membership.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace syncopate {
namespace {

std::string role_name(wire::Role role, std::uint32_t index) {
  return name_of(role_from_wire(role), Rank{index});
}

}  // namespace

Membership::Membership(Options options, TimePoint now) : options_(options), started_(now) {}

Decisions Membership::joined(NodeId node, const wire::Join& join, TimePoint now) {
  if (ended_) {
    return {};
  }
  if (const auto objection = objection_to(join)) {
    return end(
        wire::Abort::KIND_CONFIG,
        fmt::format("{} (pid {} on {}) cannot join: {}", role_name(join.role(), join.index()),
                    join.pid(), join.host(), *objection),
        node);
  }
  joins_.emplace(node, join);
  lives_.emplace(node, Life{now, {}, AdaptiveLimit(options_.silence)});
  if (joins_.size() < options_.workers + options_.evaluators) {
    return {};
  }
  install_view();
  return {InstallView{*view_}};
}

std::optional<std::string> Membership::objection_to(const wire::Join& join) const {
  if (view_) {
    return "the job has already started";
  }
  const auto expected = join.role() == wire::ROLE_WORKER ? options_.workers : options_.evaluators;
  if (join.index() >= expected) {
    return fmt::format("this job has room for {} of its kind", expected);
  }
  for (const auto& [node, other] : joins_) {
    if (other.role() == join.role() && other.index() == join.index()) {
      return fmt::format("its place is taken by pid {} on {}", other.pid(), other.host());
    }
    if (other.agreement() != join.agreement()) {
      return fmt::format("it runs \"{}\", but {} runs \"{}\"", join.agreement(),
                         role_name(other.role(), other.index()), other.agreement());
    }
  }
  return std::nullopt;
}

void Membership::install_view() {
  View view{.number = 1, .members = {}};
  for (const auto& [node, join] : joins_) {
    view.members.push_back({
        .node = node,
        .role = role_from_wire(join.role()),
        .rank = Rank{join.index()},
        .host = join.host(),
        .pid = join.pid(),
        .address = join.address(),
        .device = join.device(),
    });
  }
  std::sort(view.members.begin(), view.members.end(), [](const Member& a, const Member& b) {
    return std::pair(a.role, a.rank) < std::pair(b.role, b.rank);
  });
  view_ = std::move(view);
}

Decisions Membership::heard(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now) {
  const auto life = lives_.find(node);
  if (life != lives_.end()) {
    life->second.silence.observed(now - life->second.last_heard);
    life->second.last_heard = now;
    life->second.last = heartbeat;
  }
  return {};
}

Decisions Membership::arrived(NodeId node, std::uint64_t barrier) {
  auto& waiting = barriers_[barrier];
  waiting.insert(node);
  if (waiting.size() < options_.workers) {
    return {};
  }
  barriers_.erase(barrier);
  return {ReleaseBarrier{barrier}};
}

Decisions Membership::missing(NodeId reporter, const wire::Missing& report, TimePoint now) {
  std::vector<std::string> signs;
  NodeId culprit{};
  for (const auto rank : report.ranks()) {
    const Member* member = view_ ? view_->find(Role::worker, Rank{rank}) : nullptr;
    if (member) {
      culprit = member->node;
      signs.push_back(fmt::format("{}, {}", member->to_string(), last_sign_of(culprit, now)));
    }
  }
  return end(wire::Abort::KIND_TIMED_OUT,
             fmt::format("step {}, {}: {} waited {:.1f} s (usually {:.3f} s) for {}", report.step(),
                         report.operation(), name_of(reporter), report.waited_seconds(),
                         report.usual_seconds(), fmt::join(signs, "; ")),
             culprit);
}

Decisions Membership::refused(const std::string& reason) {
  return end(wire::Abort::KIND_CONFIG, reason);
}

Decisions Membership::failed(NodeId node, const wire::Abort& abort) {
  return end(abort.kind(), fmt::format("{}: {}", name_of(node), abort.reason()), node);
}

Decisions Membership::lost(NodeId node, TimePoint now) {
  const auto life = lives_.find(node);
  if (life == lives_.end() || life->second.has_left) {
    return {};
  }
  return end(wire::Abort::KIND_PEER_LOST,
             fmt::format("{} died; {}", name_of(node), last_sign_of(node, now)), node);
}

Decisions Membership::left(NodeId node) {
  const auto life = lives_.find(node);
  if (ended_ || life == lives_.end()) {
    return {};
  }
  life->second.has_left = true;
  const bool all = view_ && std::all_of(lives_.begin(), lives_.end(),
                                        [](const auto& entry) { return entry.second.has_left; });
  if (!all) {
    return {};
  }
  ended_ = true;
  return {JobDone{}};
}

Decisions Membership::time_passed(TimePoint now) {
  if (!view_ && now - started_ > options_.gathering) {
    return end(wire::Abort::KIND_TIMED_OUT,
               fmt::format("after {:.0f} s there is still no sign of {}",
                           to_seconds(options_.gathering), absent()));
  }
  for (const auto& [node, life] : lives_) {
    if (!life.has_left && now - life.last_heard > life.silence.limit()) {
      return end(wire::Abort::KIND_PEER_LOST,
                 fmt::format("{} no longer answers; {}", name_of(node), last_sign_of(node, now)),
                 node);
    }
  }
  return {};
}

Decisions Membership::end(wire::Abort::Kind kind, const std::string& reason, NodeId culprit) {
  if (ended_) {
    return {};
  }
  ended_ = true;
  wire::Abort abort;
  abort.set_kind(kind);
  abort.set_reason(reason);
  abort.set_node(culprit.value);
  return {EndJob{abort}};
}

std::string Membership::absent() const {
  std::vector<std::string> names;
  const auto look_for = [&](wire::Role role, std::uint32_t count) {
    for (std::uint32_t index = 0; index < count; ++index) {
      const bool here = std::any_of(joins_.begin(), joins_.end(), [&](const auto& entry) {
        return entry.second.role() == role && entry.second.index() == index;
      });
      if (!here) {
        names.push_back(role_name(role, index));
      }
    }
  };
  look_for(wire::ROLE_WORKER, options_.workers);
  look_for(wire::ROLE_EVALUATOR, options_.evaluators);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string Membership::last_sign_of(NodeId node, TimePoint now) const {
  const auto life = lives_.find(node);
  if (life == lives_.end()) {
    return "never heard";
  }
  const wire::Heartbeat& last = life->second.last;
  return fmt::format("last heard {:.1f} s ago, in {} of step {}",
                     to_seconds(now - life->second.last_heard),
                     last.phase().empty() ? "start-up" : last.phase(), last.step());
}

std::string Membership::name_of(NodeId node) const {
  const auto join = joins_.find(node);
  return join == joins_.end() ? fmt::format("node {}", node.value)
                              : fmt::format("{} (pid {} on {})",
                                            role_name(join->second.role(), join->second.index()),
                                            join->second.pid(), join->second.host());
}

}  // namespace syncopate
