#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "membership/job_slots.hpp"
#include "membership/wait_policy.hpp"
#include "runtime/job_view.hpp"
#include "runtime/waits.hpp"

namespace syncopate {

/// The node may have this place, and is to be told what the job is.
struct AnswerEnquiry {
  NodeId node;
  std::uint32_t index = 0;
};
/// The node takes no part; the others do not notice.
struct RefuseJoin {
  NodeId node;
  wire::Abort abort;
};
/// These have not joined yet.
struct ReportAbsent {
  std::string names;
};
/// Everyone expected is here: this is the view.
struct InstallView {
  View view;
};
/// Every worker that is still there has arrived at this barrier.
struct ReleaseBarrier {
  std::uint64_t barrier = 0;
};
/// A worker is gone, and the others go on without it.
struct DropWorker {
  Member member;
  std::string reason;
};
/// The wait that this node has reported goes on; it is to be reported again after so long.
struct ExtendWait {
  NodeId node;
  std::uint64_t wait = 0;
  Duration more{};
};
/// The job cannot go on.
struct EndJob {
  wire::Abort abort;
};
/// Every member has done its work and left, or was dropped.
struct JobDone {};

using Decision = std::variant<AnswerEnquiry, RefuseJoin, ReportAbsent, InstallView, ReleaseBarrier,
                              DropWorker, ExtendWait, EndJob, JobDone>;
using Decisions = std::vector<Decision>;

/// Who takes part in a job, and whether they are alive: a pure state machine.
///
/// Events with their times go in, decisions come out. A job gathers until every expected member has
/// joined, works until every one has left, and ends early at the first of: a member lost or silent, a
/// reported wait for workers that are missing (`WaitPolicy`), a member's own failure. A node whose join
/// contradicts the job is refused, and the job gathers on.
///
/// A job that spares workers goes on without one that is lost, silent or failed, once the first
/// barrier was released, and as long as another is there or has done its work. It ends all the same
/// where a failure is one of all workers: a bad configuration, bad data, a loss that is no number.
/// It goes on without one that hangs, too, and, where workers synchronize with each other, without one that
/// does not come to a synchronization; but not without rank 0 there, which leads the others.
///
/// Invariants: at most one view; a node is refused once, and a worker dropped once; after EndJob or
///             JobDone no further decision; every EndJob names the culprit where there is one.
class Membership {
 public:
  struct Options {
    std::uint32_t workers = 1;
    std::uint32_t servers = 0;
    std::uint32_t evaluators = 1;
    bool spares_workers = false;
    bool spares_first = true;     ///< rank 0, too, where workers are spared
    bool spares_missing = false;  ///< those who report that ranks are missing go on without these
    /// What all members must agree upon; empty: what the first that joins brings.
    std::string agreement = {};
    Duration gathering = std::chrono::seconds(60);     ///< from the start until all have joined
    Duration remind_every = std::chrono::seconds(10);  ///< between two ReportAbsent
    AdaptiveLimit::Options silence{.floor = std::chrono::seconds(10), .factor = 40, .window = 64};
    WaitPolicy::Options waits{};  ///< how long workers are waited for

    /// Whether the job may go on without this worker.
    bool spares(Rank worker) const { return spares_workers && (spares_first || worker != Rank{0}); }
  };

  Membership(Options options, TimePoint now);

  /// A node asks for a place. Errors: ProtocolError, for a role that this build does not know.
  Decisions enquired(NodeId node, const wire::Enquire& enquiry);
  /// Errors: as `enquired`.
  Decisions joined(NodeId node, const wire::Join& join, TimePoint now);
  Decisions heard(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now);
  /// Of workers alone; others pass a barrier once it was released.
  Decisions arrived(NodeId node, std::uint64_t barrier);
  /// A node waits for others, and reports it. Every report of a node that is present is answered by ExtendWait, unless
  /// the job ends or the node itself is dropped.
  Decisions missing(NodeId reporter, const wire::Missing& report, TimePoint now);
  /// Those who know what the job is for object to it.
  Decisions refused(const std::string& reason);
  /// The node says that it cannot go on, or speaks what nobody understands.
  Decisions failed(NodeId node, const wire::Abort& abort);
  /// The node's connection broke.
  Decisions lost(NodeId node, TimePoint now);
  Decisions left(NodeId node);
  Decisions time_passed(TimePoint now);

  /// Null until everyone has joined.
  const View* view() const { return view_ ? &*view_ : nullptr; }
  /// All joins so far, for those who policy them.
  const std::map<NodeId, wire::Join>& joins() const { return joins_; }
  /// Whether the node has joined and neither left nor been dropped.
  bool is_present(NodeId node) const;

 private:
  enum class Standing { present, left, dropped };

  struct Life {
    TimePoint last_heard;
    wire::Heartbeat last;
    AdaptiveLimit silence;
    Standing standing = Standing::present;
  };

  std::optional<std::string> objection_to(NodeId node, const wire::Join& join) const;
  Decisions refuse(NodeId node, wire::Abort::Kind kind, const std::string& reason);
  void install_view();
  Decisions gathering_passed(TimePoint now);

  std::vector<NodeId> nodes_of(const wire::Missing& report) const;
  Decisions go_on_or_end_without(const WaitPolicy::Verdict& verdict, const std::string& reason);
  std::string reason_of(NodeId reporter, const wire::Missing& report,
                        const std::vector<NodeId>& missing, TimePoint now) const;
  Decisions go_on_or_end(wire::Abort::Kind kind, const std::string& reason, NodeId culprit);
  bool may_drop(NodeId node) const;
  bool may_drop(const std::vector<NodeId>& nodes) const;
  Decisions drop(NodeId node, const std::string& reason);
  Decisions go_on_without(NodeId node, Standing standing);
  bool is_complete(const std::set<NodeId>& arrived) const;
  Decisions release_complete();
  Decisions end(wire::Abort::Kind kind, const std::string& reason, NodeId culprit = {});

  std::string last_sign_of(NodeId node, TimePoint now) const;
  std::string name_of(NodeId node) const;

  Options options_;
  TimePoint started_;
  TimePoint reminded_;
  JobSlots slots_;
  std::map<NodeId, wire::Join> joins_;
  std::map<NodeId, Life> lives_;
  WaitPolicy wait_policy_;
  std::set<NodeId> refused_;
  std::map<std::uint64_t, std::set<NodeId>> barriers_;
  std::optional<View> view_;
  bool training_ = false;  ///< a barrier was released
  bool ended_ = false;
};

}  // namespace syncopate
