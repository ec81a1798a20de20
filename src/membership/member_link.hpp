#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "pacer/pacer_client.hpp"
#include "runtime/failure_listener.hpp"
#include "runtime/view.hpp"
#include "runtime/waits.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// What a job is, as its coordinator tells it to a node that enquires, before it joins: the
/// configuration, and the place that the coordinator keeps for the node.
/// Errors: ConfigError: the coordinator refuses; TimedOut, PeerLost; ProtocolError.
wire::JobDescription enquire(Transport& transport, const wire::Enquire& enquiry,
                             TimePoint deadline);

/// Tells the coordinator why this node, which has enquired, does not join after all, and closes the
/// transport.
void decline(World& world, const std::exception& why);

/// A member's side of the conversation with the coordinator.
///
/// Two background tasks serve it: one sends a heartbeat every `heartbeat_every`, one receives. When
/// the coordinator ends the job, or is lost, the whole node is cancelled with the error that says
/// why, so that no task of it waits any longer.
///
/// Thread: one owner; the background tasks are its own.
class MemberLink : public PacerClient, public FailureListener, public WaitArbiter {
 public:
  struct Options {
    wire::Join join;  ///< its address is filled in
    Duration heartbeat_every = std::chrono::milliseconds(200);
  };

  MemberLink(World& world, Options options);
  ~MemberLink() override;
  MemberLink(const MemberLink&) = delete;
  MemberLink& operator=(const MemberLink&) = delete;

  /// Joins the job, waits for everyone, and introduces the transport to all other members.
  /// Errors: what ended the job instead.
  const View& join();
  const View& view() const { return view_; }

  /// Where heartbeats pull the member's status from. `source` is called by the heartbeat task and by
  /// `report_wait`, until this call has returned with another one. Empty: the last status stands.
  void set_status_source(std::function<wire::Heartbeat()> source);
  /// The step in hand makes progress: the next heartbeat says so. Thread: any.
  void progressed() { ++progress_; }
  /// The coordinator's reason to end training at the next meeting; empty while there is none.
  std::optional<std::string> stop_reason() const;
  /// The job asked to stop because its samples are complete.
  bool job_is_complete() const;
  /// Sleeps until `when`, or until the coordinator asks to stop. Returns false in the second case.
  /// Thread: one. Errors: what ended the job.
  bool sleep_unless_stopped(TimePoint when);
  /// Tells the coordinator that the samples of the job are complete. It asks every worker to stop.
  void report_complete();
  /// This worker's share of the speed of all, as the pacer expects it; empty where it is not known.
  std::optional<double> speed_share() const;
  /// Throws what ended the job, once something has. For those who go on after a TimedOut or a PeerLost:
  /// with the job ended, every blocking call throws such an error, and does so for ever.
  void check() const;
  /// Workers without whom the job goes on, of whom the coordinator has told since the last call. The
  /// view keeps them; to the transport they are lost. Thread: any.
  std::vector<wire::Dropped> take_dropped();

  /// Blocks until every worker that is still there has called it as many times as this node.
  void barrier();
  /// A barrier at which all workers go on at one moment, and with them the pacer's times: at the start
  /// of a job, and at a round at which replicas agree. What happens after it is the same in a run that
  /// is resumed there. `pacer`: what a checkpoint says of it, from the worker that has read one.
  /// `on_loss` is called first, and whenever a worker has been dropped meanwhile: for the members of a
  /// group that has to agree on its last synchronization again.
  /// Returns what the pacer goes on with; nothing in a job that is not paced.
  wire::PacerMemory restart(
      const std::optional<wire::PacerMemory>& pacer = {},
      const std::function<void()>& on_loss = [] {});
  void report(const wire::Evaluation& evaluation);
  void report(const wire::Checkpoint& checkpoint);

  void report(const StepReport& report) override;
  PaceOrder order() const override;

  std::vector<Rank> lost() const override;
  void finished() override;
  bool all_finished() const override;
  bool await_more(std::size_t known, TimePoint deadline) override;

  Duration report_wait(const LongWait& wait) override;

  /// Tells the coordinator why this node cannot go on, gives it a moment to answer with the cause
  /// that it knows of, and throws that, or else `error`.
  [[noreturn]] void fail(const std::exception& error);

  /// Tells the coordinator that this member has done its work, and closes the transport.
  void leave(const wire::Leave& leave);

 private:
  /// A report of a wait, until it is answered.
  struct WaitReport {
    std::unique_ptr<Event> answered;
    std::optional<Duration> more{};
  };

  wire::Heartbeat pull_status();
  void beat();
  void listen();
  void handle(const wire::FromCoordinator& message);
  void give_up(const wire::Dropped& gone);
  void follow(const wire::Pace& pace);
  void pass(const wire::Released& released);
  void extend(const wire::MoreTime& answer);
  void end_job(const std::exception_ptr& why);
  void tell(const wire::ToCoordinator& message);
  std::uint64_t arrive(const wire::Arrived& arrived = {});
  void end_tasks();
  /// Blocks until `ready`, which is asked under the mutex.
  void wait_until(const std::function<bool()>& ready);

  World& world_;
  Options options_;
  View view_;
  std::uint64_t barriers_ = 0;
  std::atomic<std::uint64_t> progress_ = 0;

  std::mutex status_mutex_;  // guards the next two members, also while a status is pulled
  std::function<wire::Heartbeat()> status_source_;
  wire::Heartbeat last_status_;

  mutable std::mutex mutex_;  // guards the members below
  std::optional<View> received_view_;
  std::optional<std::string> stop_reason_;
  bool complete_ = false;
  std::optional<double> speed_share_;
  PaceOrder order_;
  bool introduced_ = false;             ///< the transport knows the members of the view
  std::vector<wire::Dropped> dropped_;  ///< all of them
  std::size_t taken_ = 0;               ///< of these, by `take_dropped`
  std::uint64_t released_ = 0;
  wire::PacerMemory released_pacer_;
  std::optional<std::uint64_t> last_barrier_;  ///< at which those arrive who have finished
  std::uint64_t reports_ = 0;                  ///< of waits, so far
  std::map<std::uint64_t, std::shared_ptr<WaitReport>> unanswered_;
  bool leaving_ = false;
  std::exception_ptr ended_;  ///< why the job did

  std::unique_ptr<Event> changed_;   // something arrived for the owner
  std::unique_ptr<Event> beat_now_;  // ends the pause between heartbeats
  std::unique_ptr<Event> stop_asked_;
  std::unique_ptr<Task> heart_;
  std::unique_ptr<Task> ear_;
};

}  // namespace syncopate
