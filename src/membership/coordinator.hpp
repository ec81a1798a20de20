#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "membership/membership.hpp"
#include "pacer/pacer.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// What a job wants to know and to say while its coordinator runs. Called from the coordinator's
/// own task, in the order of events.
class JobObserver {
 public:
  virtual ~JobObserver() = default;

  /// Everyone has joined: a reason to refuse the job, or empty.
  virtual std::optional<std::string> objection(const std::map<NodeId, wire::Join>& joins) = 0;
  /// A node may not take part; the job does not mind.
  virtual void refused(const std::string& reason) = 0;
  /// These have not joined yet, after some time.
  virtual void awaiting(const std::string& absent) = 0;
  virtual void view_installed(const View& view) = 0;
  virtual void heard(const Member& member, const wire::Heartbeat& heartbeat) = 0;
  virtual void evaluated(const wire::Evaluation& evaluation) = 0;
  virtual void checkpoint_written(const wire::Checkpoint& checkpoint) = 0;
  virtual void left(const Member& member, const wire::Leave& leave) = 0;
  /// The member is gone, the job goes on, and nothing more is heard of it.
  virtual void dropped(const Member& member, const std::string& reason) = 0;
  /// Of a job that is paced, every 100 ms.
  virtual void paced(const PacerState& state) = 0;
  /// Of a job that is paced: what the pacer has decided of a worker, so long after the view was installed.
  virtual void pace_decided(const Pace& pace, Duration moment) = 0;
  /// Of a job that is paced: a worker has done a step, after what was decided of it before.
  virtual void stepped(Rank worker, const StepReport& report) = 0;
  /// Called at least every 100 ms: the reason to end training now, or empty.
  virtual std::optional<std::string> reason_to_stop() = 0;
};

/// Keeps a job together: rendezvous, ranks, the view, barriers, heartbeats, the pace, and the end.
///
/// An event loop that owns its state alone; `Membership` and `Pacer` decide, this drives. It is node 0.
class Coordinator {
 public:
  struct Options {
    Membership::Options membership;
    std::optional<Pacer::Options> pacing = {};  ///< of a job whose workers are paced
    /// What nodes are told that enquire what the job is; their place is filled in.
    wire::JobDescription description = {};
  };

  Coordinator(World& world, JobObserver& observer, Options options);

  /// Serves until every member has left. When the job ends by an error, every member is told, and
  /// the error is thrown: ConfigError, PeerLost, TimedOut or Error.
  void run();

 private:
  Decisions next_event();
  Decisions understand(const Message& message);
  Decisions handle(NodeId from, const wire::ToCoordinator& message);
  Decisions handle_step(NodeId from, const wire::Stepped& stepped);
  Decisions handle_join(NodeId from, const wire::Join& join);
  void carry_out(const Decision& decision);
  void act(const AnswerEnquiry& answer);
  void act(const RefuseJoin& refusal);
  void act(const NameAbsent& absent);
  void act(const InstallView& install);
  void act(const ReleaseBarrier& release);
  void act(const DropWorker& drop);
  void act(const ExtendWait& extension);
  [[noreturn]] void act(const EndJob& end);
  void act(const JobDone& done);
  Decisions handle_arrival(NodeId from, const wire::Arrived& arrived);
  void restart_pace();
  void keep_pace();
  void carry_out(const Paces& paces);
  void tell_speed_shares(const PacerState& state);
  void tell_first_paces();
  void no_longer_pace(NodeId node);
  void stop_if_wanted();
  void stop_when_complete();
  void tell(NodeId node, const wire::FromCoordinator& message);
  void tell_everyone(const wire::FromCoordinator& message);

  World& world_;
  JobObserver& observer_;
  Membership membership_;
  std::optional<Pacer> pacer_;
  TimePoint next_tick_{};  ///< when time next passes for the pacer, and the observer hears of it
  TimePoint installed_{};  ///< the view
  std::uint64_t restart_barrier_ = 0;  ///< the last at which workers restart
  std::vector<double> shares_told_;    ///< of the workers' speeds, by rank
  const wire::JobDescription description_;
  bool stopping_ = false;
  bool complete_ = false;  ///< the samples of the job
  bool done_ = false;
};

/// The error that an Abort stands for.
std::exception_ptr to_error(const wire::Abort& abort);

/// How an error is told to others.
wire::Abort to_abort(const std::exception& error);

}  // namespace syncopate
