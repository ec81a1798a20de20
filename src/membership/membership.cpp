#include "membership/membership.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "runtime/member_ends.hpp"

namespace syncopate {
namespace {

wire::Abort abort_of(wire::Abort::Kind kind, const std::string& reason, NodeId culprit) {
  wire::Abort abort;
  abort.set_kind(kind);
  abort.set_reason(reason);
  abort.set_node(culprit.value);
  return abort;
}

/// True for failures of the model, which every other worker has, too.
bool concerns_all(wire::Abort::Kind kind) {
  return kind == wire::Abort::KIND_NOT_FINITE;
}

/// Least limit for a test, which may take long even if the user allows only waits of a few seconds.
constexpr Duration least_evaluation_limit = std::chrono::minutes(1);

}  // namespace

Decisions blaming(const std::vector<NodeId>& hung, Decisions decisions) {
  for (Decision& decision : decisions) {
    if (auto* const end = std::get_if<EndJob>(&decision)) {
      for (const NodeId node : hung) {
        end->abort.add_hung(node.value);
      }
    } else if (auto* const drop = std::get_if<DropWorker>(&decision)) {
      drop->hangs = std::ranges::find(hung, drop->member.node) != hung.end();
    }
  }
  return decisions;
}

void append(Decisions& to, Decisions more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

Membership::Membership(Options options, TimePoint now)
    : options_(std::move(options)),
      started_(now),
      reminded_(now),
      admission_({.slots = {.workers = options_.workers,
                            .servers = options_.servers,
                            .evaluators = options_.evaluators},
                  .agreement = options_.agreement}),
      liveness_(options_.silence),
      wait_policy_(options_.waits),
      late_programs_(std::max(options_.waits.wait_limit, options_.waits.heartbeat)),
      evaluation_wait_(std::max(options_.waits.wait_limit, least_evaluation_limit)) {}

Decisions Membership::enquired(NodeId node, const wire::Enquire& enquiry) {
  if (ended_ || admission_.was_refused(node)) {
    return {};
  }
  const Admission::Answer answer = admission_.enquired(node, enquiry);
  if (answer.refusal) {
    return refuse(node, wire::Abort::KIND_CONFIG, *answer.refusal);
  }
  return {AnswerEnquiry{node, answer.index}};
}

Decisions Membership::joined(NodeId node, const wire::Join& join, TimePoint now) {
  if (ended_ || admission_.was_refused(node)) {
    return {};
  }
  const Admission::Answer answer = admission_.joined(node, join);
  if (answer.refusal) {
    return refuse(node, wire::Abort::KIND_CONFIG, *answer.refusal);
  }
  liveness_.joined(node, now);
  if (join.role() == wire::ROLE_WORKER) {
    wait_policy_.joined(node, now);
    mutual_wait_.joined(node, now);
    late_programs_.joined(node, now);
  } else {
    wait_policy_.accessory_joined(node, now);
  }
  if (view_) {
    return replace_evaluator(node, join);
  }
  if (!admission_.is_complete()) {
    return {};
  }
  install_view();
  return {InstallView{*view_}};
}

Decisions Membership::refuse(NodeId node, wire::Abort::Kind kind, const std::string& reason) {
  admission_.refuse(node);
  return {RefuseJoin{node, abort_of(kind, reason, node)}};
}

void Membership::install_view() {
  View view{.number = 1, .members = {}};
  for (const auto& [node, join] : joins()) {
    view.members.push_back(member_of(node, join));
  }
  std::sort(view.members.begin(), view.members.end(), [](const Member& a, const Member& b) {
    return std::pair(a.role, a.rank) < std::pair(b.role, b.rank);
  });
  view_ = std::move(view);
  admission_.close();
}

/// Puts the admitted node in the evaluator's place: in a job that has started, no other slot is
/// ever free.
Decisions Membership::replace_evaluator(NodeId node, const wire::Join& join) {
  Member replacement = member_of(node, join);
  const auto place =
      std::find_if(view_->members.begin(), view_->members.end(), [&](const Member& member) {
        return member.role == replacement.role && member.rank == replacement.rank;
      });
  *place = std::move(replacement);
  ++view_->number;
  return {ReplaceEvaluator{*view_, *place}};
}

/// Updates the slots after a member of the view is gone. Once the sender of snapshots is gone, a
/// new evaluator would have nothing to do.
void Membership::update_slots(const Member& gone, Liveness::Standing standing) {
  if (gone.role == Role::evaluator && standing == Liveness::Standing::dropped) {
    admission_.vacate(gone.node);
  }
  if (gone.role == options_.snapshots_from && gone.rank == Rank{0}) {
    admission_.end();
  }
}

void Membership::begin_turn(TimePoint now) {
  const Duration absence = absences_.turn(now);
  if (absence == Duration::zero()) {
    return;
  }
  started_ += absence;
  reminded_ += absence;
  liveness_.forgive(absence, now);
  wait_policy_.forgive(absence, now);
  mutual_wait_.forgive(absence, now);
  evaluation_wait_.forgive(absence, now);
  if (end_requested_) {
    *end_requested_ += absence;
  }
  if (open_wait_) {
    open_wait_->when += absence;
  }
}

void Membership::on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now) {
  liveness_.on_heartbeat(node, heartbeat, now);
  wait_policy_.on_heartbeat(node, heartbeat, now);
  mutual_wait_.on_heartbeat(node, heartbeat, now);
  late_programs_.on_heartbeat(node, heartbeat, now);
  if (sender(node) == Sender::evaluator) {
    evaluation_wait_.on_heartbeat(heartbeat.progress(), now);
  }
}

Decisions Membership::arrived(NodeId node, std::uint64_t barrier) {
  const Member* member = view_ ? view_->find(node) : nullptr;
  if (ended_ || !is_present(node) || !member || member->role != Role::worker) {
    return {};
  }
  barriers_[barrier].insert(node);
  if (!is_complete(barriers_[barrier])) {
    return {};
  }
  barriers_.erase(barrier);
  training_ = true;
  return {ReleaseBarrier{barrier}};
}

/// Releases the barriers at which only workers that are gone were missing.
Decisions Membership::release_complete() {
  Decisions decisions;
  for (auto barrier = barriers_.begin(); barrier != barriers_.end();) {
    if (is_complete(barrier->second)) {
      decisions.push_back(ReleaseBarrier{barrier->first});
      barrier = barriers_.erase(barrier);
    } else {
      ++barrier;
    }
  }
  return decisions;
}

bool Membership::is_complete(const std::set<NodeId>& arrived) const {
  const auto workers = view_->workers();
  return std::all_of(workers.begin(), workers.end(), [&](const Member& worker) {
    return arrived.contains(worker.node) || !is_present(worker.node);
  });
}

Decisions Membership::missing(NodeId reporter, const wire::Missing& report, TimePoint now) {
  if (ended_ || !is_present(reporter)) {
    return {};
  }
  const WaitPolicy::Verdict verdict =
      wait_policy_.decide({.from = reporter,
                           .awaited = nodes_of(report),
                           .waited = from_seconds(report.waited_seconds()),
                           .limit = from_seconds(report.limit_seconds()),
                           .servers = servers_of(report)},
                          now);
  if (verdict.more) {
    open_wait_ = {reporter, report, now};
    return {ExtendWait{reporter, report.wait(), *verdict.more}};
  }
  Decisions decisions =
      go_on_or_end_without(verdict, reason_of(reporter, report, verdict.missing, now));
  if (!ended_ && is_present(reporter)) {
    decisions.push_back(ExtendWait{reporter, report.wait(), options_.waits.wait_limit / 2});
  }
  return decisions;
}

std::vector<NodeId> Membership::nodes_of(const wire::Missing& report) const {
  return nodes_of(Role::worker, report.ranks());
}

std::vector<NodeId> Membership::servers_of(const wire::Missing& report) const {
  return nodes_of(Role::server, report.servers());
}

std::vector<NodeId> Membership::nodes_of(
    Role role, const google::protobuf::RepeatedField<std::uint32_t>& ranks) const {
  std::vector<NodeId> nodes;
  for (const auto rank : ranks) {
    if (const Member* member = view_ ? view_->find(role, Rank{rank}) : nullptr) {
      nodes.push_back(member->node);
    }
  }
  return nodes;
}

std::string Membership::reason_of(NodeId reporter, const wire::Missing& report,
                                  const std::vector<NodeId>& missing, TimePoint now) const {
  return fmt::format("step {}, {}: {} waited {:.1f} s (usually {:.3f} s){}{}", report.step(),
                     report.operation(), name_of(reporter), report.waited_seconds(),
                     report.usual_seconds(), missing.empty() ? "" : " for ",
                     signs_of(missing, now));
}

std::string Membership::signs_of(const std::vector<NodeId>& nodes, TimePoint now) const {
  std::vector<std::string> signs;
  for (const NodeId node : nodes) {
    signs.push_back(fmt::format("{}, {}", name_of(node), last_sign_of(node, now)));
  }
  return fmt::format("{}", fmt::join(signs, "; "));
}

/// If workers do not synchronize with each other, a missing worker that does not hang may be
/// innocent: it may wait for the server itself.
Decisions Membership::go_on_or_end_without(const WaitPolicy::Verdict& verdict,
                                           const std::string& reason) {
  const std::vector<NodeId>& missing = verdict.missing;
  if (!(options_.spares_missing || verdict.hang) || !may_drop(missing)) {
    return blaming(missing, end(wire::Abort::KIND_TIMED_OUT, reason,
                                missing.empty() ? NodeId{} : missing.back()));
  }
  Decisions decisions;
  for (const NodeId culprit : missing) {
    append(decisions, go_on_or_end(wire::Abort::KIND_TIMED_OUT, reason, culprit));
  }
  return blaming(missing, std::move(decisions));
}

Decisions Membership::refused(const std::string& reason) {
  return end(wire::Abort::KIND_CONFIG, reason);
}

Decisions Membership::cannot_begin(const std::string& reason) {
  return end(wire::Abort::KIND_FAILURE, reason);
}

Decisions Membership::waited_in_vain(NodeId node, const wire::Abort& abort, TimePoint now) {
  const auto awaited = abort.node() == 0 ? std::nullopt : std::optional(NodeId{abort.node()});
  const auto culprit = wait_policy_.blame(node, awaited, now);
  const auto named = culprit ? culprit : awaited;
  if (ended_ || !is_present(node) || !named) {
    return failed(node, abort);
  }
  const std::string story = fmt::format("{}: {}; it waited for {}", name_of(node), abort.reason(),
                                        signs_of({*named}, now));
  Decisions decisions;
  for (const NodeId lost : {culprit.value_or(node), node}) {
    append(decisions, go_on_or_end(abort.kind(), story, lost));
  }
  return culprit ? blaming({*culprit}, std::move(decisions)) : decisions;
}

Decisions Membership::failed(NodeId node, const wire::Abort& abort) {
  const std::string reason = fmt::format("{}: {}", name_of(node), printable(abort.reason()));
  if (!joins().contains(node)) {
    return ended_ || admission_.was_refused(node) ? Decisions{}
                                                  : refuse(node, abort.kind(), reason);
  }
  if (concerns_all(abort.kind()) && is_present(node)) {
    return end(abort.kind(), reason, node);
  }
  return go_on_or_end(abort.kind(), reason, node);
}

Decisions Membership::lost(NodeId node, TimePoint now) {
  admission_.lost(node);
  return go_on_or_end(wire::Abort::KIND_PEER_LOST,
                      member_ends::died(name_of(node), last_sign_of(node, now)), node);
}

/// Decides about the loss of a member. The loss of one that has left already has no effect.
Decisions Membership::go_on_or_end(wire::Abort::Kind kind, const std::string& reason,
                                   NodeId culprit) {
  if (ended_ || !is_present(culprit)) {
    return {};
  }
  return may_drop(culprit) ? drop(culprit, reason) : end(kind, reason, culprit);
}

bool Membership::may_drop(NodeId node) const {
  const Member* member = view_ ? view_->find(node) : nullptr;
  if (member && member->role == Role::evaluator) {
    return true;
  }
  if (!training_ || member->role != Role::worker || !options_.spares(member->rank)) {
    return false;
  }
  const auto workers = view_->workers();
  return std::any_of(workers.begin(), workers.end(), [&](const Member& other) {
    return other.node != node && !liveness_.was_dropped(other.node);
  });
}

/// Workers that were dropped before do not count.
bool Membership::may_drop(const std::vector<NodeId>& nodes) const {
  return !nodes.empty() && std::all_of(nodes.begin(), nodes.end(), [this](NodeId node) {
    return !is_present(node) || may_drop(node);
  });
}

Decisions Membership::drop(NodeId node, const std::string& reason) {
  Decisions decisions{DropWorker{*view_->find(node), reason}};
  for (Decision& consequence : go_on_without(node, Liveness::Standing::dropped)) {
    decisions.push_back(std::move(consequence));
  }
  return decisions;
}

Decisions Membership::left(NodeId node) {
  return ended_ || !is_present(node) ? Decisions{} : go_on_without(node, Liveness::Standing::left);
}

Decisions Membership::go_on_without(NodeId node, Liveness::Standing standing) {
  liveness_.gone(node, standing);
  wait_policy_.gone(node);
  mutual_wait_.gone(node);
  late_programs_.gone(node);
  if (!view_) {
    return {};
  }
  update_slots(*view_->find(node), standing);
  Decisions decisions = release_complete();
  ended_ = !liveness_.any_present();
  if (ended_) {
    decisions.push_back(JobDone{});
  }
  return decisions;
}

Decisions Membership::time_passed(TimePoint now) {
  Decisions decisions = gathering_passed(now);
  for (Decision& decision : evaluation_passed(now)) {
    decisions.push_back(std::move(decision));
  }
  for (Decision& decision : judge_hangs(now)) {
    decisions.push_back(std::move(decision));
  }
  for (const NodeId node : liveness_.silent(now)) {
    const std::string reason = member_ends::silent(name_of(node), last_sign_of(node, now));
    append(decisions, blaming({node}, go_on_or_end(wire::Abort::KIND_PEER_LOST, reason, node)));
  }
  return decisions;
}

Decisions Membership::gathering_passed(TimePoint now) {
  if (ended_ || view_) {
    return {};
  }
  if (now - started_ > options_.gathering) {
    return end(wire::Abort::KIND_TIMED_OUT,
               member_ends::never_came(admission_.absent(), options_.gathering));
  }
  if (now - reminded_ < options_.remind_every) {
    return {};
  }
  reminded_ = now;
  return {ReportAbsent{admission_.absent()}};
}

const Member* Membership::lone_evaluator() const {
  const Member* evaluator = view_ ? view_->find(Role::evaluator, Rank{0}) : nullptr;
  if (!evaluator || !is_present(evaluator->node)) {
    return nullptr;
  }
  const bool others =
      std::any_of(view_->members.begin(), view_->members.end(), [&](const Member& member) {
        return member.node != evaluator->node && is_present(member.node);
      });
  return others ? nullptr : evaluator;
}

Decisions Membership::evaluation_passed(TimePoint now) {
  const Member* evaluator = ended_ ? nullptr : lone_evaluator();
  if (!evaluation_wait_.is_over(evaluator != nullptr, now)) {
    return {};
  }
  const NodeId node = evaluator->node;
  return blaming({node},
                 drop(node, member_ends::evaluates_no_more(name_of(node), evaluation_wait_.limit(),
                                                           last_sign_of(node, now))));
}

Decisions Membership::end(wire::Abort::Kind kind, const std::string& reason, NodeId culprit) {
  if (ended_) {
    return {};
  }
  ended_ = true;
  return {EndJob{abort_of(kind, reason, culprit)}};
}

Sender Membership::sender(NodeId node) const {
  if (admission_.was_refused(node)) {
    return Sender::gone;
  }
  const auto join = joins().find(node);
  if (join == joins().end()) {
    return Sender::unknown;
  }
  if (!is_present(node)) {
    return Sender::gone;
  }
  const bool first = join->second.index() == 0;
  switch (join->second.role()) {
    case wire::ROLE_WORKER: return first ? Sender::leader : Sender::worker;
    case wire::ROLE_SERVER: return first ? Sender::first_server : Sender::server;
    default: return Sender::evaluator;
  }
}

std::string Membership::name_of(NodeId node) const {
  const std::string name = admission_.holder_name(node);
  return name.empty() ? fmt::format("node {}", node.value) : name;
}

}  // namespace syncopate
