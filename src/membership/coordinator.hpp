#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "membership/membership.hpp"
#include "membership/turn_watch.hpp"
#include "runtime/control_link.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// Observes a job at its coordinator, and may end it. Called from the coordinator's own task, in
/// the order of events.
class JobObserver {
 public:
  virtual ~JobObserver() = default;

  /// Called once every member has joined. Returns a reason to refuse the job, or nothing.
  virtual std::optional<std::string> objection(const std::map<NodeId, wire::Join>& joins) = 0;
  /// The coordinator has refused a node, or drops its messages; the job continues.
  virtual void refused(const std::string& reason) = 0;
  /// Called after some time, with the names of the members that have not joined yet.
  virtual void awaiting(const std::string& absent) = 0;
  /// A message to the user about a job that continues.
  virtual void noted(const std::string& text) = 0;
  virtual void view_installed(const View& view) = 0;
  virtual void heartbeat_received(const Member& member, const wire::Heartbeat& heartbeat) = 0;
  virtual void evaluated(const wire::Evaluation& evaluation) = 0;
  virtual void checkpoint_written(const wire::Checkpoint& checkpoint) = 0;
  virtual void left(const Member& member, const wire::Leave& leave) = 0;
  /// The job continues without the member, which sends no more events.
  virtual void dropped(const Member& member, const std::string& reason) = 0;
  /// A new evaluator has taken the place of the one that was dropped.
  virtual void replaced(const Member& /*evaluator*/) {}
  /// Called at least every 100 ms: the reason to end training now, or empty.
  virtual std::optional<std::string> reason_to_stop() = 0;
  /// True if the user waits for the end: a job that does not reach it by itself is then ended.
  virtual bool end_is_urgent() { return false; }
};

/// Uses the coordinator's node for more than the job under way: programs are there before it, and
/// after it. Called from the coordinator's own task.
class NodeService {
 public:
  virtual ~NodeService() = default;

  /// Handles a message of any node. Returns false for one that is about the job.
  virtual bool take(NodeId from, const wire::ToCoordinator& message) = 0;
  /// The node's connection broke. Returns why the job cannot begin any more, or nothing.
  virtual std::optional<std::string> lost(NodeId node) = 0;
  /// Called in every turn.
  virtual void turn() = 0;
};

/// The event loop of node 0: it receives control messages, `Membership` decides, and it sends the
/// decisions.
class Coordinator {
 public:
  struct Options {
    Membership::Options membership;
    std::unique_ptr<ControlHandler> pacing = {};  ///< null: the workers are not paced
    NodeService* service = nullptr;  ///< null: the node serves only this job, and closes with it
    /// The answer to a node that enquires what the job is; the coordinator adds the node's slot.
    wire::JobDescription description = {};
    std::string name = "the coordinator";  ///< "the coordinator (pid 4711 on c3)"
    /// Called from another task when that of `run` hangs, after the abort was sent to all members.
    std::function<void(const std::string& reason)> hung = {};
  };

  Coordinator(World& world, JobObserver& observer, Options options);

  /// Serves until every member has left. When an error ends the job, sends it to every member and
  /// throws it: ConfigError, PeerLost, TimedOut or Error. When the calling task itself hangs,
  /// another one ends the job with an error that names the coordinator.
  void run();

 private:
  bool handle_event(TimePoint until);
  TimePoint end_of_pause() const;
  Decisions decode_and_handle(const Message& message);
  bool admits(NodeId from, const wire::ToCoordinator& message);
  Decisions handle_or_reject(NodeId from, const wire::ToCoordinator& message);
  Decisions handle(NodeId from, const wire::ToCoordinator& message);
  Decisions handle_join(NodeId from, const wire::Join& join);
  Decisions handle_arrival(NodeId from, const wire::Arrived& arrived);
  Decisions handle_step(NodeId from, const wire::ToCoordinator& message);
  Decisions handle_rejection(const wire::Rejected& rejected);
  void end_pacing_of(const Member& member);
  /// Null for a node that is no member, or is one no longer.
  const Member* present_member(NodeId node) const;

  void carry_out(const Decisions& decisions);
  void act(const AnswerEnquiry& answer);
  void act(const RefuseJoin& refusal);
  void act(const ReportAbsent& absent);
  void act(const Note& note);
  void act(const InstallView& install);
  void act(const ReleaseBarrier& release);
  void act(const DropWorker& drop);
  void act(const ExtendWait& extension);
  [[noreturn]] void act(const EndJob& end);
  void act(const JobDone& done);
  void ping_if_due();
  void act(const ReplaceEvaluator& replacement);
  void stop_if_requested();
  void stop(const std::string& reason);
  void stop_when_complete();
  void handle_completion(const wire::Complete& complete);
  void end_hung_job(Duration still);
  Decisions lose(NodeId node);
  void close(Duration limit);

  void send(NodeId node, const wire::FromCoordinator& message);
  void send_to_all(const wire::FromCoordinator& message);

  World& world_;
  JobObserver& observer_;
  Membership membership_;
  std::unique_ptr<ControlHandler> pacing_;
  NodeService* const service_;
  std::map<NodeId, TimePoint> dropped_;
  std::set<NodeId> warned_of_;         ///< nodes whose messages are dropped
  std::uint64_t restart_barrier_ = 0;  ///< the last at which workers restart
  const wire::JobDescription description_;
  const std::string name_;
  const std::function<void(const std::string&)> hung_;
  const Duration hang_limit_;
  Mutex joined_mutex_;
  std::vector<NodeId> joined_ GUARDED_BY(joined_mutex_);  ///< members, for the watching task
  /// Outlives `run`, so that a watching task that hangs does not hold up the end of the job.
  std::optional<TurnWatch> watch_;
  bool stopping_ = false;
  bool complete_ = false;  ///< the samples of the job are complete
  bool done_ = false;
};

}  // namespace syncopate
