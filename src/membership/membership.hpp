#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "membership/acceptance.hpp"
#include "membership/admission.hpp"
#include "membership/liveness.hpp"
#include "membership/program_watch.hpp"
#include "membership/wait_policy.hpp"
#include "runtime/job_view.hpp"
#include "runtime/waits.hpp"

namespace syncopate {

/// Sends the job's description to the node, with the slot that it may have.
struct AnswerEnquiry {
  NodeId node;
  std::uint32_t index = 0;
};
/// The node takes no part; the other members are not affected.
struct RefuseJoin {
  NodeId node;
  wire::Abort abort;
};
/// These members have not joined yet.
struct ReportAbsent {
  std::string names;
};
/// All expected members have joined: this is the view.
struct InstallView {
  View view;
};
/// Every remaining worker has arrived at this barrier.
struct ReleaseBarrier {
  std::uint64_t barrier = 0;
};
/// A new evaluator replaces the one that was dropped: this is the view now.
struct ReplaceEvaluator {
  View view;
  Member member;
};
/// The job continues without this worker, or without the evaluator.
struct DropWorker {
  Member member;
  std::string reason;
  bool hangs = false;  ///< the member lives, as far as is known, but makes no progress
};
/// The reported wait of this node continues; the node reports it again after `more`.
struct ExtendWait {
  NodeId node;
  std::uint64_t wait = 0;
  Duration more{};
};
/// The job ends by an error. Its abort also names every member that hangs.
struct EndJob {
  wire::Abort abort;
};
/// A message to the user about a job that continues.
struct Note {
  std::string text;
};
/// Every member has done its work and left, or was dropped.
struct JobDone {};

using Decision = std::variant<AnswerEnquiry, RefuseJoin, ReportAbsent, InstallView, ReleaseBarrier,
                              DropWorker, ExtendWait, EndJob, JobDone, ReplaceEvaluator, Note>;
using Decisions = std::vector<Decision>;

/// Marks decisions as made because these members hang: they live, as far as is known, but make no
/// progress. The abort that each of them receives then names it.
Decisions blaming(const std::vector<NodeId>& hung, Decisions decisions);

void append(Decisions& to, Decisions more);

/// The members of a job, and whether they are alive: a pure state machine.
///
/// Events with their times go in, decisions come out. A job gathers until every expected member has
/// joined, works until every one has left, and ends early at the first of: a member lost or silent,
/// a reported wait for workers that are missing (`WaitPolicy`), a member's own failure. The job
/// refuses a node whose join contradicts it, and continues to gather.
///
/// A job that spares workers continues without a worker that is lost, silent, failed or hangs, once
/// the first barrier was released, if another worker is present or has done its work. If workers
/// synchronize with each other, it also continues without one that does not reach a
/// synchronization. It does not continue without rank 0 if that leads the others, nor after a
/// failure that all workers share: a loss that is not a number.
///
/// Every job continues without its evaluator once all have joined, and accepts a replacement until
/// the member that sends snapshots has left, or the user has requested the end. When every other
/// member is gone, it waits for the last evaluations as long as the evaluator makes progress.
///
/// A job of programs also ends if their collectives and their steps wait for each other
/// (`MutualWait`). A program that takes no step is given up as a member that hangs
/// (`LatePrograms`).
///
/// A member hangs if its heartbeats arrive but it makes no progress or takes no messages, even if
/// no member reports a wait for it. Once the user has requested the end, the job ends by itself, or
/// is ended as soon as its members make no more progress.
///
/// Invariants: one view, of which only the evaluator is replaced; a node is refused once, and a
///             worker dropped once; after EndJob or JobDone no further decision; every EndJob names
///             the culprit if there is one.
class Membership {
 public:
  struct Options {
    std::uint32_t workers = 1;
    std::uint32_t servers = 0;
    std::uint32_t evaluators = 1;
    bool spares_workers = false;
    bool spares_first = true;            ///< rank 0, too, if workers are spared
    bool spares_missing = false;         ///< the job continues without workers missing from a wait
    Role snapshots_from = Role::worker;  ///< rank 0 of this role sends them to the evaluator
    /// All members must bring the same text; empty: the text of the first that joins.
    std::string agreement = {};
    Duration gathering = std::chrono::seconds(60);     ///< from the start until all have joined
    Duration remind_every = std::chrono::seconds(10);  ///< between two ReportAbsent
    AdaptiveLimit::Options silence{.floor = std::chrono::seconds(10), .factor = 40, .window = 64};
    WaitPolicy::Options waits{};  ///< for workers
    /// Set if no worker waits for another: none would report one that hangs between its steps.
    bool judges_idle_workers = false;
    Duration ping_every = std::chrono::milliseconds(500);
    /// Time for which nothing may happen after the user's request to end.
    Duration end_patience = std::chrono::milliseconds(1500);

    /// True if the job may continue without this worker.
    bool spares(Rank worker) const { return spares_workers && (spares_first || worker != Rank{0}); }
  };

  /// Longest time between the beginnings of two turns of the coordinator.
  static constexpr Duration turn_every = std::chrono::milliseconds(100);

  Membership(Options options, TimePoint now);

  /// A node requests a slot. Errors: ProtocolError if this build does not know the role.
  Decisions enquired(NodeId node, const wire::Enquire& enquiry);
  /// Errors: as `enquired`.
  Decisions joined(NodeId node, const wire::Join& join, TimePoint now);
  /// Call this when a turn of the coordinator begins, before it handles any message. If the
  /// coordinator was absent since its last turn, this time counts for none of the limits.
  void begin_turn(TimePoint now);
  void on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now);
  /// Counts only workers; other members pass a barrier once it was released.
  Decisions arrived(NodeId node, std::uint64_t barrier);
  /// A node reports that it waits for others. The answer to a node that is present is ExtendWait,
  /// unless the job ends or drops the node itself.
  Decisions missing(NodeId reporter, const wire::Missing& report, TimePoint now);
  /// The observer of the job refuses it.
  Decisions refused(const std::string& reason);
  /// What the job needs beside its members is missing.
  Decisions cannot_begin(const std::string& reason);
  /// The node has reported its failure, or sent a message that cannot be decoded.
  Decisions failed(NodeId node, const wire::Abort& abort);
  /// A wait of the node ended at its deadline before it was judged. The node cannot know which
  /// member it waited for: the loss of both is decided, and the message names the other.
  Decisions waited_in_vain(NodeId node, const wire::Abort& abort, TimePoint now);
  /// The node's connection broke.
  Decisions lost(NodeId node, TimePoint now);
  Decisions left(NodeId node);
  /// Judges silence. Every message that had arrived by `now` must have been handled.
  Decisions time_passed(TimePoint now);
  /// The number of the ping that is due, if one is. Every member repeats it in its heartbeats once
  /// the ping has arrived.
  std::optional<std::uint64_t> next_ping(TimePoint now);
  /// The user has requested the end of the job. It ends at once while it gathers.
  Decisions end_requested(TimePoint now);

  /// Null until every member has joined.
  const View* view() const { return view_ ? &*view_ : nullptr; }
  /// All joins so far, for the observer of the job.
  const std::map<NodeId, wire::Join>& joins() const { return admission_.joins(); }
  /// True if the node has joined and neither left nor been dropped.
  bool is_present(NodeId node) const { return liveness_.is_present(node); }
  /// The kind of sender that the node is: it decides which messages the node may send.
  Sender sender(NodeId node) const;
  /// "worker 2 (pid 4711 on c3)", or "node 7".
  std::string name_of(NodeId node) const;

 private:
  Decisions refuse(NodeId node, wire::Abort::Kind kind, const std::string& reason);
  void install_view();
  Decisions replace_evaluator(NodeId node, const wire::Join& join);
  void update_slots(const Member& gone, Liveness::Standing standing);
  Decisions gathering_passed(TimePoint now);
  /// The evaluator, if it is present and every other member is gone.
  const Member* lone_evaluator() const;
  Decisions evaluation_passed(TimePoint now);
  Decisions judge_hangs(TimePoint now);
  Decisions judge_requested_end(TimePoint now);
  Decisions judge_mutual_wait(TimePoint now);
  Decisions judge_late_programs();
  std::string hang_of(NodeId node, TimePoint now) const;

  std::vector<NodeId> nodes_of(const wire::Missing& report) const;
  std::vector<NodeId> servers_of(const wire::Missing& report) const;
  std::vector<NodeId> nodes_of(Role role,
                               const google::protobuf::RepeatedField<std::uint32_t>& ranks) const;
  Decisions go_on_or_end_without(const WaitPolicy::Verdict& verdict, const std::string& reason);
  std::string reason_of(NodeId reporter, const wire::Missing& report,
                        const std::vector<NodeId>& missing, TimePoint now) const;
  Decisions go_on_or_end(wire::Abort::Kind kind, const std::string& reason, NodeId culprit);
  bool may_drop(NodeId node) const;
  bool may_drop(const std::vector<NodeId>& nodes) const;
  Decisions drop(NodeId node, const std::string& reason);
  Decisions go_on_without(NodeId node, Liveness::Standing standing);
  bool is_complete(const std::set<NodeId>& arrived) const;
  Decisions release_complete();
  Decisions end(wire::Abort::Kind kind, const std::string& reason, NodeId culprit = {});

  std::string last_sign_of(NodeId node, TimePoint now) const;
  std::string signs_of(const std::vector<NodeId>& nodes, TimePoint now) const;

  Options options_;
  TimePoint started_;
  TimePoint reminded_;
  Admission admission_;
  Liveness liveness_;
  WaitPolicy wait_policy_;
  MutualWait mutual_wait_;
  LatePrograms late_programs_;
  AbsenceWatch absences_{turn_every};  ///< of the coordinator
  EvaluationWait evaluation_wait_;
  std::map<std::uint64_t, std::set<NodeId>> barriers_;
  std::optional<View> view_;
  bool training_ = false;  ///< a barrier was released
  std::optional<TimePoint> end_requested_;
  std::uint64_t pings_ = 0;
  TimePoint next_ping_{};
  bool end_expected_ = false;  ///< the patience after the request has passed
  /// The last reported wait that continues.
  struct OpenWait {
    NodeId reporter;
    wire::Missing report;
    TimePoint when;
  };
  std::optional<OpenWait> open_wait_;
  bool ended_ = false;
};

}  // namespace syncopate
