#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "base/mutex.hpp"
#include "membership/member_state.hpp"
#include "runtime/clock_offset.hpp"
#include "runtime/control_link.hpp"
#include "runtime/job_view.hpp"
#include "runtime/waits.hpp"
#include "runtime/world.hpp"
#include "transport/transport.hpp"

namespace syncopate {

/// A worker's measurement of its device, by itself, before training.
struct DeviceMeasurement {
  double samples_per_second = 0;  ///< 0: not known
  /// In steps of fewer samples the device is slower by more than a tenth; 0: not known.
  std::uint32_t efficient_samples = 0;
};

/// A member's link to the coordinator.
///
/// Two background tasks serve it: the heartbeat task sends a heartbeat every `heartbeat_every`, the
/// receive loop receives. When the coordinator ends the job, or is lost, the receive loop cancels
/// the whole node with the error, so that no task of it waits any longer.
///
/// Thread: one owner; the background tasks are the link's own.
class MemberLink : public ControlLink, public FailureListener, public WaitArbiter {
 public:
  struct Options {
    wire::Join join = {};  ///< its address is filled in
    Duration heartbeat_every = std::chrono::milliseconds(200);
    /// Called by the receive loop when the coordinator says that this member hangs, before its node
    /// is cancelled: its tasks still stand where they hang.
    std::function<void(const std::string& reason)> blamed = {};
    /// The node goes on after `leave`: it belongs to a program.
    bool stays = false;
  };

  MemberLink(World& world, Options options);
  ~MemberLink() override;
  MemberLink(const MemberLink&) = delete;
  MemberLink& operator=(const MemberLink&) = delete;

  /// Begins to receive and to send heartbeats, for a node that the coordinator knows before it
  /// joins. `join` does so itself.
  void listen();
  /// What the error calls it if it dies: "the coordinator (a thread of worker 0, pid 4711 on c3)".
  void name_coordinator(std::string name) {
    const MutexLock lock(mutex_);
    coordinator_ = std::move(name);
  }
  /// The join of a member that listens already.
  void set_join(wire::Join join) { options_.join = std::move(join); }
  /// Joins the job, waits for all members, and introduces them to the transport.
  /// Errors: the error that ended the job instead.
  const View& join();
  const View& view() const { return view_; }

  /// Heartbeats pull the member's status from `source`. The heartbeat task and `report_wait` call
  /// `source` until a later call of this function, with another one, has returned. Without a source
  /// the last status stands.
  void set_status_source(std::function<wire::Heartbeat()> source);
  /// The current step makes progress: the next heartbeat reports it. Thread: any.
  void progressed() { ++progress_; }
  /// Marks this member as standing by: it does not hang, but waits for work, or for another member
  /// in a wait that is not reported. The next heartbeats show this for a moment, so a wait calls
  /// this function every `stand_by_every`.
  /// Thread: any.
  void stands_by() { stood_by_ = world_.now(); }
  static constexpr Duration stand_by_every = std::chrono::milliseconds(250);
  /// Receives as the transport does, and stands by until the message arrives. Thread: any.
  Message receive_standing_by(NodeId from, Tag tag);
  void receive_standing_by(NodeId from, Tag tag, std::span<std::byte> into);
  /// The coordinator's reason to end training at the next synchronization; empty: there is none.
  std::optional<std::string> stop_reason() const;
  /// The time at which the first such reason arrived.
  std::optional<TimePoint> stopped_at() const;
  /// True if the coordinator ended training because the samples of the job are complete.
  bool job_is_complete() const;
  /// Sleeps until `when`, or until the coordinator ends training. Returns false in the second case.
  /// Thread: one. Errors: the error that ended the job.
  bool sleep_unless_stopped(TimePoint when);
  enum class Limit { samples, time };
  /// Reports that the job has reached a limit. The coordinator then ends training everywhere. If
  /// the samples are complete, the model takes no further gradient; if the time is over, it still
  /// takes gradients that were computed.
  void report_complete(Limit reached);
  /// This worker's share of the speed of all, as the pacer expects it; empty if it is not known.
  std::optional<double> speed_share() const;
  /// The error that ended the job; null while it goes on. Thread: any.
  std::exception_ptr ended() const {
    const MutexLock lock(mutex_);
    return state_.ended();
  }
  /// Throws the error that ended the job, if one has. A task that continues after TimedOut or
  /// PeerLost has to call it: once the job has ended, every blocking call throws such an error.
  void check() const;
  /// The workers that the coordinator has dropped since the last call. The view keeps them; to the
  /// transport they are lost. Thread: any.
  std::vector<wire::Dropped> take_dropped();
  /// The evaluator, which may change; empty if the job has none, or continues without it. A
  /// handler of `FromCoordinator::kReplaced` learns of a new one. Thread: any.
  std::optional<NodeId> evaluator() const;
  /// Bytes that this node has sent to all evaluators so far. Thread: any.
  std::uint64_t bytes_to_evaluators() const;

  /// Blocks until every remaining worker has called it as many times as this node.
  void barrier();
  /// A barrier after which all workers continue at the same moment, from which the pacer's times
  /// count: at the start of a job, and at a round after which replicas are equal. So a run resumed
  /// there continues in the same way. `pacer` is the pacer's memory from a checkpoint, on the
  /// worker that has read one. `on_loss` is called first, and again whenever a worker was dropped
  /// in the meantime: the members of a group agree in it on their last synchronization. Returns the
  /// pacer's memory; empty in a job that is not paced.
  wire::PacerMemory restart(
      const std::optional<wire::PacerMemory>& pacer = {}, const DeviceMeasurement& device = {},
      const std::function<void()>& on_loss = [] {});
  void report(const wire::Evaluation& evaluation);
  void report(const wire::Checkpoint& checkpoint);

  void send(const wire::ToCoordinator& message) override;
  void on(wire::FromCoordinator::BodyCase kind, Handler handler) override;

  std::vector<Rank> lost() const override;
  void finished() override;
  bool all_finished() const override;
  bool await_more(std::size_t known, TimePoint deadline) override;

  Duration report_wait(const LongWait& wait) override;
  void waits() override { waited_ = world_.now(); }

  /// Reports to the coordinator why this node cannot continue, and waits a moment for its answer,
  /// the cause of the failure. Throws that cause, or else `error`.
  [[noreturn]] void fail(const std::exception& error);

  /// Reports to the coordinator that this member has done its work, and closes the transport,
  /// unless the node `stays`.
  void leave(const wire::Leave& leave);
  /// Closes the transport within `limit`, and ends the node: every call of it throws from then on.
  void close(Duration limit);

 private:
  /// A report of a wait, until it is answered.
  struct WaitReport {
    std::unique_ptr<Event> answered;
    std::optional<Duration> more{};
  };

  wire::Heartbeat pull_status();
  bool is_recent(TimePoint sign) const;
  void send_heartbeats();
  void receive();
  void handle(const wire::FromCoordinator& message);
  bool is_blamed_by(const wire::FromCoordinator& message) const;
  void give_up(const wire::Dropped& member);
  void introduce(const Member& member);
  void dispatch(const wire::FromCoordinator& message) const REQUIRES(mutex_);
  bool is_answered(const WaitReport& report) const;
  void extend(const wire::MoreTime& answer) REQUIRES(mutex_);
  void end_job(const std::exception_ptr& why);
  /// The coordinator that is lost; empty if its end was expected.
  std::optional<std::string> unexpected_loss() const {
    const MutexLock lock(mutex_);
    return leaving_ ? std::nullopt : std::optional(coordinator_);
  }
  std::uint64_t arrive(const wire::Arrived& arrived = {});
  void expect_end();
  void end_tasks();
  bool wait_standing_by(Event& event, TimePoint deadline);
  /// Blocks until `ready`, which is called under the mutex.
  void wait_until(const std::function<bool()>& ready) EXCLUDES(mutex_);

  World& world_;
  Options options_;
  View view_;
  std::uint64_t barriers_ = 0;
  std::atomic<std::uint64_t> progress_ = 0;
  std::atomic<TimePoint> stood_by_ = TimePoint::min();
  std::atomic<TimePoint> waited_ = TimePoint::min();
  std::atomic<std::uint64_t> pings_ = 0;  ///< the number of the last one that has come
  ClockProbe clock_probe_;

  Mutex status_mutex_;  ///< held also while a status is pulled
  std::function<wire::Heartbeat()> status_source_ GUARDED_BY(status_mutex_);
  wire::Heartbeat last_status_ GUARDED_BY(status_mutex_);

  mutable Mutex mutex_;
  std::map<wire::FromCoordinator::BodyCase, Handler> handlers_ GUARDED_BY(mutex_);
  MemberState state_ GUARDED_BY(mutex_);
  std::optional<TimePoint> stopped_at_ GUARDED_BY(mutex_);
  bool introduced_ GUARDED_BY(mutex_) = false;  ///< the transport knows the members of the view
  std::optional<std::uint64_t> last_barrier_ GUARDED_BY(mutex_);  ///< of workers that have finished
  std::uint64_t reports_ GUARDED_BY(mutex_) = 0;                  ///< of waits, so far
  std::map<std::uint64_t, std::shared_ptr<WaitReport>> unanswered_ GUARDED_BY(mutex_);
  bool leaving_ GUARDED_BY(mutex_) = false;
  std::string coordinator_ GUARDED_BY(mutex_) = "the coordinator";

  std::unique_ptr<Event> changed_;        // something arrived for the owner
  std::unique_ptr<Event> heartbeat_now_;  // ends the pause between heartbeats
  std::unique_ptr<Event> stop_requested_;
  std::unique_ptr<Task> heartbeat_task_;
  std::unique_ptr<Task> receive_loop_;
};

}  // namespace syncopate
