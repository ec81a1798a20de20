#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "cluster/adaptive_limit.hpp"
#include "cluster/view.hpp"

namespace syncopate {

/// Everyone expected is here: this is the view.
struct InstallView {
  View view;
};
/// The job cannot go on.
struct EndJob {
  wire::Abort abort;
};
/// Every worker has arrived at this barrier.
struct ReleaseBarrier {
  std::uint64_t barrier = 0;
};
/// Every member has done its work and left.
struct JobDone {};

using Decision = std::variant<InstallView, EndJob, ReleaseBarrier, JobDone>;
using Decisions = std::vector<Decision>;

/// Who takes part in a job, and whether they are alive: a pure state machine.
///
/// Events with their times go in, decisions come out. A job gathers until every expected member has
/// joined, works until every one has left, and ends early at the first of: a join that contradicts
/// the others, a member lost or silent, a report that ranks are missing, a member's own failure.
///
/// Invariants: at most one view; after EndJob or JobDone no further decision; every EndJob names the
///             culprit where there is one.
class Membership {
 public:
  struct Options {
    std::uint32_t workers = 1;
    std::uint32_t evaluators = 1;
    Duration gathering = std::chrono::seconds(60);  ///< from the start until all have joined
    AdaptiveLimit::Options silence{.floor = std::chrono::seconds(10), .factor = 40, .window = 64};
  };

  Membership(Options options, TimePoint now);

  Decisions joined(NodeId node, const wire::Join& join, TimePoint now);
  Decisions heard(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now);
  Decisions arrived(NodeId node, std::uint64_t barrier);
  Decisions missing(NodeId reporter, const wire::Missing& report, TimePoint now);
  /// Those who know what the job is for object to it.
  Decisions refused(const std::string& reason);
  Decisions failed(NodeId node, const wire::Abort& abort);
  /// The node's connection broke.
  Decisions lost(NodeId node, TimePoint now);
  Decisions left(NodeId node);
  Decisions time_passed(TimePoint now);

  /// Null until everyone has joined.
  const View* view() const { return view_ ? &*view_ : nullptr; }
  /// All joins so far, for those who judge them.
  const std::map<NodeId, wire::Join>& joins() const { return joins_; }

 private:
  struct Life {
    TimePoint last_heard;
    wire::Heartbeat last;
    AdaptiveLimit silence;
    bool has_left = false;
  };

  Decisions end(wire::Abort::Kind kind, const std::string& reason, NodeId culprit = {});
  std::optional<std::string> objection_to(const wire::Join& join) const;
  std::string absent() const;
  std::string last_sign_of(NodeId node, TimePoint now) const;
  std::string name_of(NodeId node) const;
  void install_view();

  Options options_;
  TimePoint started_;
  std::map<NodeId, wire::Join> joins_;
  std::map<NodeId, Life> lives_;
  std::map<std::uint64_t, std::set<NodeId>> barriers_;
  std::optional<View> view_;
  bool ended_ = false;
};

}  // namespace syncopate
