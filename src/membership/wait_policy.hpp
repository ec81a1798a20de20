#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.hpp"

namespace syncopate {

/// Decides from the heartbeats of one worker how long the others wait for it. A pure state machine.
///
/// The others wait for a worker that computes until `due`:
///
///     max(begun + max(wait_limit, factor · expected), progressed + wait_limit)    expected > 0
///     progressed + max(wait_limit, unknown_step)                                 expected = 0
///
/// `begun` is the time at which the current step began; `progressed` the last time at which the
/// worker's progress counter grew, or `begun`; `expected` the likely duration of the step, by the
/// worker's device profile and its earlier steps. A worker that does not compute synchronizes,
/// starts up or writes a checkpoint: the others wait until wait_limit after its last step. A worker
/// that computes after `due` hangs.
///
/// A member is deaf (takes no messages) while its heartbeats arrive without the number of the
/// coordinator's last ping.
///
/// If no member waits for this one, its heartbeat clock decides (`stands_still`). This clock runs
/// only while heartbeats arrive: a process that was stopped is silent, which is not a hang. While
/// the member computes, the limit is that above; otherwise a given time since it last stood by.
///
/// Order:  heartbeats in the order of their arrival.
/// Thread: one.
class StepWatch {
 public:
  struct Options {
    Duration wait_limit = std::chrono::seconds(60);
    double factor = 20;
    Duration unknown_step = std::chrono::minutes(10);  ///< without progress, if nothing is expected
    Duration heartbeat = std::chrono::seconds(1);  ///< no limit is shorter: heartbeats may be late
  };

  StepWatch(const Options& options, TimePoint now);

  void on_heartbeat(const wire::Heartbeat& heartbeat, TimePoint now);

  /// The coordinator has sent the ping of this number.
  void pinged(std::uint64_t number, TimePoint now);

  /// The coordinator was absent for this long, and has received no heartbeats in that time.
  void forgive(Duration absence, TimePoint now);

  TimePoint due() const;
  bool waited_for(TimePoint now) const { return now < due(); }
  /// True if the worker computes for longer than is likely.
  bool hangs(TimePoint now) const { return computing_ && !waited_for(now); }
  /// True if its heartbeats arrive, but it has done nothing for too long: it computes after `due`,
  /// or has neither computed nor stood by for `idle_limit`. Time without heartbeats does not count.
  bool stands_still(TimePoint now, Duration idle_limit) const;
  /// The same after the user's request to end; also true if the member is silent for `patience`.
  /// The limits follow from the usual durations of this member, not from the limit of waits, and
  /// none is shorter than `patience`.
  bool stands_still_at_end(TimePoint now, Duration patience) const;
  /// Call this when the member has had time to receive the user's request to end.
  void end_expected() { then_ = {.rounds = rounds_, .step = step_}; }
  /// True if it has trained more rounds since then than a member that has received the request.
  bool ignores_end() const { return then_ && rounds_ > then_->rounds + rounds_to_end; }
  /// True if it has taken steps but no round since then: it waits for the others in this way.
  bool steps_on_alone() const {
    return then_ && step_ > then_->step + 1 && rounds_ == then_->rounds;
  }
  /// True if the loop of its program has waited outside of a step for `patience`.
  bool waits_in_program(TimePoint now, Duration patience) const {
    return program_waits_ && heard_time(now) >= program_waits_since_ + patience;
  }
  /// Time for which heartbeats have arrived without the number of the last ping. Zero for a member
  /// that has shown no ping at all: it starts up.
  Duration deaf_for(TimePoint now) const;
  bool is_deaf(TimePoint now) const { return deaf_for(now) >= deafness; }
  /// True if a heartbeat has arrived a moment ago.
  bool is_heard(TimePoint now) const { return now - last_heard_ <= deafness; }
  bool is_computing() const { return computing_; }
  bool stands_by() const { return standing_by_; }
  /// True if it waits for others, and shows that it does not hang itself.
  bool waits() const { return waiting_ && !computing_; }
  std::uint64_t step() const { return step_; }
  /// True while it sends a snapshot or writes a checkpoint, which may take long.
  bool saves() const { return saving_; }
  Duration expected() const { return expected_; }
  /// When the current step began, or the pause after the last one.
  TimePoint begun() const { return begun_; }

 private:
  /// When the current step, or the pause after the last one, began, and its last progress.
  struct Moments {
    TimePoint begun;
    TimePoint progressed;
  };

  /// After more rounds than this, a worker ignores the request to end. It needs one or two rounds
  /// to its end, or a few if rounds overlap.
  static constexpr double rounds_to_end = 10;

  /// A member is deaf after this time. A ping and the heartbeat after it take less, even on a busy
  /// machine.
  static constexpr Duration deafness = std::chrono::milliseconds(1500);

  TimePoint due(const Moments& moments) const;
  Duration longest_pause_at_end() const;
  TimePoint heard_time(TimePoint now) const;

  Options options_;
  bool computing_ = false;
  bool standing_by_ = false;
  bool waiting_ = false;
  bool synchronizing_ = false;
  bool saving_ = false;
  std::uint64_t step_ = 0;
  std::uint64_t progress_ = 0;
  Duration expected_{};
  Duration usual_synchronization_{};
  double rounds_ = 0;
  /// The member's progress when `end_expected` was called.
  struct Then {
    double rounds;
    std::uint64_t step;
  };
  std::optional<Then> then_;
  bool program_loop_ = false;
  TimePoint first_heard_;   ///< on the heartbeat clock
  TimePoint last_stepped_;  ///< on the heartbeat clock
  bool program_waits_ = false;
  TimePoint program_waits_since_;  ///< on the heartbeat clock
  TimePoint begun_;                ///< the current step, or the pause after the last one
  TimePoint progressed_;
  std::uint64_t pinged_ = 0;  ///< by the coordinator
  std::uint64_t pings_ = 0;   ///< the last number in its heartbeats
  TimePoint unheard_since_;   ///< on the heartbeat clock
  Moments heard_;             ///< `begun_` and `progressed_` on the heartbeat clock
  TimePoint last_heard_;      ///< on the coordinator's clock
  TimePoint heard_until_;     ///< on the heartbeat clock
};

/// Decides about the long waits that workers report: a wait continues, or some workers are missing.
/// A pure state machine of the coordinator, beside `Membership`.
///
/// In this order:
/// 1. A worker that hangs or is deaf (`StepWatch`) is missing, even if the reporter waits for
///    another one.
/// 2. A wait has taken its own limit: a worker is missing if the reporter waits for it, it is past
///    its due time, and it reports no wait itself.
/// 3. Another worker is not past its due time: the wait continues. The reporter may wait for that
///    worker through others, as in a ring. A wait for a server that waits for no worker continues
///    until its limit.
/// 4. Otherwise every worker that reports no wait itself is missing; if there is none, those that
///    the reporter waits for. If a server waits for no worker, none is missing.
///
/// A member that hangs is found without a report, too (`hanging_alone`). A wait for a server
/// continues as long as the server does not hang, and for another wait_limit if it lives but does
/// not answer.
///
/// Liveness: every wait ends or is decided: wait_limit after the last worker has stopped computing
///           at the latest, or when one hangs.
/// Thread:   one.
class WaitPolicy {
 public:
  using Options = StepWatch::Options;

  struct Report {
    NodeId from;
    std::vector<NodeId> awaited{};  ///< workers; empty: the reporter waits only for a server
    Duration waited{};
    Duration limit{};               ///< of the wait, if no worker computes
    std::vector<NodeId> servers{};  ///< whose answers the reporter waits for
  };

  struct Verdict {
    std::optional<Duration> more{};  ///< the wait continues; report it again after this
    std::vector<NodeId> missing{};   ///< workers or a server, if the wait does not continue
    bool hang = false;               ///< the missing workers hang in their steps
  };

  explicit WaitPolicy(const Options& options) : options_(options) {}

  void joined(NodeId worker, TimePoint now);
  /// A server or the evaluator has joined.
  void accessory_joined(NodeId node, TimePoint now);
  void on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now);
  /// As `StepWatch::pinged`, for all members.
  void pinged(std::uint64_t number, TimePoint now);
  /// As `StepWatch::forgive`, for all members.
  void forgive(Duration absence, TimePoint now);
  /// The member has left, or was dropped: the others wait for it no more.
  void gone(NodeId node);

  Verdict decide(const Report& report, TimePoint now);

  /// Decides when a member that neither computes nor stands by hangs.
  struct Idle {
    bool workers =
        false;  ///< also workers that are in no step, since no other worker waits for them
    bool starting = false;  ///< members start up, which may take long
  };
  /// The members that hang, whether or not another one waits for them: servers and the evaluator
  /// first, since workers may wait for these.
  std::vector<NodeId> hanging_alone(const Idle& idle, TimePoint now) const;
  /// True if, by their last heartbeats, neither the servers nor the evaluator have anything to do.
  bool servers_stand_by(TimePoint now) const;
  /// As `StepWatch::end_expected`, for all workers.
  void end_expected();
  /// The members that prevent the end that the user has requested: those that hang, are deaf or
  /// continue to train. If there are none, and no member can reach its end by itself, those without
  /// progress: of them, those that report no wait, if any; of these, the servers and the evaluator,
  /// if any, else the workers at the earliest step. Empty while the job may still reach its end.
  /// `patience`: every member may do nothing for at least this time.
  std::vector<NodeId> preventing_end(Duration patience, TimePoint now) const;
  /// The member to blame for a failed wait for `awaited`, other than the reporter: one that hangs,
  /// else the awaited one unless it waits or computes in time, else the first worker that does
  /// neither.
  std::optional<NodeId> blame(NodeId reporter, std::optional<NodeId> awaited, TimePoint now) const;

  /// Null for a node that is no member, or is gone.
  const StepWatch* watch(NodeId node) const;

 private:
  struct Worker {
    StepWatch watch;
    TimePoint waits_until;  ///< by then it reports its wait again
  };
  using Members = std::map<NodeId, Worker>;

  Worker* find(NodeId node);
  const Worker* find(NodeId node) const;
  Verdict judge_servers(const Report& report, TimePoint now);

  std::vector<NodeId> workers_but(NodeId one) const;
  std::vector<NodeId> hanging(TimePoint now) const;
  std::vector<NodeId> idle_of(const std::vector<NodeId>& nodes, TimePoint now) const;
  std::vector<NodeId> culprits_of(std::vector<NodeId> idle) const;
  Verdict give_up(const Report& report, TimePoint now);
  std::optional<TimePoint> next_due(NodeId reporter, TimePoint now) const;
  Verdict extend(NodeId reporter, Duration wanted, TimePoint now);

  Options options_;
  Members workers_;
  Members accessories_;  ///< servers and the evaluator
};

}  // namespace syncopate
