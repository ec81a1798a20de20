#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.hpp"

namespace syncopate {

/// How long the others wait for one worker, by its heartbeats. A pure state machine.
///
/// The others wait for a worker that computes until `due`:
///
///     max(begun + max(wait_limit, factor · expected), progressed + wait_limit)    expected > 0
///     progressed + max(wait_limit, unknown_step)                                 expected = 0
///
/// `begun` is the moment at which the current step began; `progressed` the last one at which the
/// worker's progress counter grew, or `begun`; `expected` the time that the worker's device profile
/// and its earlier steps make likely. A worker that does not compute synchronizes, starts up or
/// writes a checkpoint: the others wait until wait_limit after its last step. A worker that
/// computes after `due` hangs.
///
/// A member takes no messages, or is deaf, while its heartbeats come without the number of the
/// coordinator's last ping.
///
/// A member that nobody waits for is judged by the time in which its heartbeats come
/// (`stands_still`): a process that was stopped is silent, which is not a hang. While it computes,
/// the limit is that above; otherwise it is a given one since it was last seen to stand by.
///
/// Order:  heartbeats in the order of their arrival.
/// Thread: one.
class StepWatch {
 public:
  struct Options {
    Duration wait_limit = std::chrono::seconds(60);
    double factor = 20;
    Duration unknown_step =
        std::chrono::minutes(10);                  ///< without progress, where nothing is expected
    Duration heartbeat = std::chrono::seconds(1);  ///< no limit is shorter: heartbeats come late
  };

  StepWatch(const Options& options, TimePoint now);

  void on_heartbeat(const wire::Heartbeat& heartbeat, TimePoint now);

  /// The coordinator has sent the ping of this number.
  void pinged(std::uint64_t number, TimePoint now);

  /// The coordinator was absent for this long, and has not heard of progress in that time.
  void forgive(Duration absence, TimePoint now);

  TimePoint due() const;
  bool waited_for(TimePoint now) const { return now < due(); }
  /// The worker computes, but longer than is likely.
  bool hangs(TimePoint now) const { return computing_ && !waited_for(now); }
  /// It is heard, but has done nothing for too long: it computes after `due`, or has neither
  /// computed nor stood by for `idle_limit`. Time without heartbeats does not count.
  bool stands_still(TimePoint now, Duration idle_limit) const;
  /// The same after the user's request to end, or it is silent for `patience`: limits follow from
  /// what is usual for this member, without the limit of a wait, and `patience` is given to each.
  bool stands_still_at_end(TimePoint now, Duration patience) const;
  /// It should have heard of the user's request to end by now.
  void end_expected() { then_ = {.rounds = rounds_, .step = step_}; }
  /// It has trained on for more rounds since then than one that has heard of the request.
  bool ignores_end() const { return then_ && rounds_ > then_->rounds + rounds_to_end; }
  /// It takes steps of its own since then, and no round: it waits for the others in this way.
  bool steps_on_alone() const {
    return then_ && step_ > then_->step + 1 && rounds_ == then_->rounds;
  }
  /// The loop of its program has waited elsewhere for so long.
  bool waits_in_program(TimePoint now, Duration patience) const {
    return program_waits_ && heard_time(now) >= program_waits_since_ + patience;
  }
  /// For how long heartbeats have come without the number of a ping that was sent before. A member
  /// that has shown none at all starts up.
  Duration deaf_for(TimePoint now) const;
  bool is_deaf(TimePoint now) const { return deaf_for(now) >= deafness; }
  /// It was heard a moment ago.
  bool is_heard(TimePoint now) const { return now - last_heard_ <= deafness; }
  bool is_computing() const { return computing_; }
  bool stands_by() const { return standing_by_; }
  /// It waits for others, and shows that it does not hang itself.
  bool waits() const { return waiting_ && !computing_; }
  std::uint64_t step() const { return step_; }
  /// It hands over a model or writes a checkpoint, which takes its time.
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

  /// A worker takes one or two rounds to its end, or a few where rounds overlap.
  static constexpr double rounds_to_end = 10;

  /// A ping and the heartbeat after it take a part of this, also on a busy machine.
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
  /// When the end was expected.
  struct Then {
    double rounds;
    std::uint64_t step;
  };
  std::optional<Then> then_;
  bool program_loop_ = false;
  TimePoint first_heard_;   ///< by the clock that stops
  TimePoint last_stepped_;  ///< by the clock that stops
  bool program_waits_ = false;
  TimePoint program_waits_since_;  ///< by the clock that stops
  TimePoint begun_;                ///< the current step, or the pause after the last one
  TimePoint progressed_;
  std::uint64_t pinged_ = 0;  ///< by the coordinator
  std::uint64_t pings_ = 0;   ///< that have come
  TimePoint unheard_since_;   ///< by the clock that stops
  Moments heard_;             ///< the same, on a clock that stops where no heartbeat comes
  TimePoint last_heard_;      ///< by the coordinator's clock
  TimePoint heard_until_;     ///< by the clock that stops
};

/// Decides about the long waits that workers report: a wait continues, or some workers are missing.
/// A pure state machine of the coordinator, beside `Membership`.
///
/// In this order:
/// 1. A worker that hangs or is deaf (`StepWatch`) is missing, whichever one is waited for.
/// 2. A wait has taken its own limit: a worker is missing if the reporter waits for it, it is past
///    its due time, and it reports no wait itself.
/// 3. Another worker is not past its due time: the wait continues. The reporter may wait for that
///    worker through others, as in a ring. A wait for a server that waits for no worker continues
///    until its limit.
/// 4. Otherwise every worker is missing that reports no wait itself; if there is none, those that
///    the reporter waits for. If a server waits for no worker, none is missing.
///
/// A member that hangs is found without a report, too (`hanging_alone`). A server is waited for as
/// long as it does not hang, and for another wait_limit if it lives and does not answer.
///
/// Liveness: every wait ends or is decided: wait_limit after the last worker has stopped computing
///           at the latest, or when one hangs.
/// Thread:   one.
class WaitPolicy {
 public:
  using Options = StepWatch::Options;

  struct Report {
    NodeId from;
    std::vector<NodeId> awaited{};  ///< workers; empty: the reporter waits for a server alone
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

  /// When a member that neither computes nor stands by is found to hang.
  struct Idle {
    bool workers =
        false;  ///< also workers that are in no step, since no other worker waits for them
    bool starting = false;  ///< members start up, which may take long
  };
  /// The members that hang, whether or not another one waits for them: servers and the evaluator
  /// first, since workers may wait for these.
  std::vector<NodeId> hanging_alone(const Idle& idle, TimePoint now) const;
  /// No server, and no evaluator, has anything to do, as its last heartbeats say.
  bool servers_stand_by(TimePoint now) const;
  /// Every member should have heard of the user's request to end by now.
  void end_expected();
  /// The members that prevent the end that the user has requested: those that hang, are deaf, or
  /// train on; or else those that do not go on, where no member computes any more: those that do
  /// not even wait, servers, for which workers wait, or the workers of the earliest step. Empty
  /// while the end may still come. `patience`: as long as a member may do nothing at least.
  std::vector<NodeId> preventing_end(Duration patience, TimePoint now) const;
  /// The member that a failed wait for `awaited` is to be blamed on, other than the reporter: one
  /// that hangs, else the awaited one unless it waits or computes in time, else the first worker
  /// that does neither.
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
