#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control_link.hpp"
#include "runtime/job_view.hpp"

namespace syncopate {

/// The job as one member knows it from the coordinator's messages. A pure state machine.
///
/// Thread: one at a time.
class MemberState {
 public:
  /// Applies a message, if it is about the job: a message of another subject has no effect.
  /// Errors: ProtocolError if no member expects such a message.
  void apply(const wire::FromCoordinator& message);

  /// Empty until every member has joined.
  const std::optional<View>& view() const { return view_; }
  /// The reason to end training, once the coordinator has sent one.
  const std::optional<std::string>& stop_reason() const { return stop_reason_; }
  /// The samples of the job are complete.
  bool is_complete() const { return complete_; }
  /// This worker's share of the speed of all; empty if it is not known.
  const std::optional<double>& speed_share() const { return speed_share_; }

  /// The workers without which the job continues, in the order in which they were dropped.
  const std::vector<wire::Dropped>& dropped() const { return dropped_; }
  std::vector<Rank> lost() const;
  /// Those that were dropped since the last call.
  std::vector<wire::Dropped> take_dropped();
  /// The evaluator that was dropped; empty while the job has one.
  const std::optional<wire::Dropped>& dropped_evaluator() const { return dropped_evaluator_; }
  /// The evaluators of the job so far: that of the view, then its replacements.
  const std::vector<Member>& evaluators() const { return evaluators_; }
  /// The evaluator; empty if the job has none, or continues without it.
  std::optional<NodeId> evaluator() const;

  /// The last barrier that was released.
  std::uint64_t released() const { return released_; }
  /// The pacer's memory at the last restart.
  const wire::PacerMemory& pacer() const { return pacer_; }

  /// The error that ended the job; null while the job runs. Only the first error is kept.
  const std::exception_ptr& ended() const { return ended_; }
  void end(const std::exception_ptr& error);

 private:
  void on_release(const wire::Released& released);
  void on_drop(const wire::Dropped& dropped);
  void on_replacement(const wire::Member& replacement);

  std::optional<View> view_;
  std::optional<std::string> stop_reason_;
  bool complete_ = false;
  std::optional<double> speed_share_;
  std::vector<wire::Dropped> dropped_;
  std::size_t taken_ = 0;  ///< number of dropped workers that `take_dropped` has returned
  std::optional<wire::Dropped> dropped_evaluator_;
  std::vector<Member> evaluators_;
  std::uint64_t released_ = 0;
  wire::PacerMemory pacer_;
  std::exception_ptr ended_;
};

}  // namespace syncopate
