#include "membership/member_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "membership/coordinator.hpp"
#include "transport/tags.hpp"
#include "wire/control.hpp"

namespace syncopate {
namespace {

constexpr Duration time_to_explain = std::chrono::seconds(3);
constexpr Duration farewell = std::chrono::seconds(10);
constexpr Duration time_to_judge = std::chrono::seconds(60);

void post_to_coordinator(Transport& transport, const wire::ToCoordinator& message) {
  transport.post(coordinator_node, tags::to_coordinator, wire::encode(message));
}

wire::Missing to_wire(const LongWait& wait) {
  wire::Missing missing;
  for (const Rank rank : wait.ranks) {
    missing.add_ranks(rank.value);
  }
  missing.set_operation(wait.operation);
  missing.set_waited_seconds(to_seconds(wait.waited));
  missing.set_usual_seconds(to_seconds(wait.usual));
  missing.set_limit_seconds(to_seconds(wait.limit));
  return missing;
}

}  // namespace

wire::JobDescription enquire(Transport& transport, const wire::Enquire& enquiry,
                             TimePoint deadline) {
  wire::ToCoordinator question;
  *question.mutable_enquire() = enquiry;
  post_to_coordinator(transport, question);
  const Message message = transport.receive(coordinator_node, tags::from_coordinator, deadline);
  const wire::FromCoordinator answer = wire::decode_from_coordinator(message.payload);
  if (answer.has_abort()) {
    std::rethrow_exception(to_error(answer.abort()));
  }
  if (!answer.has_job()) {
    throw ProtocolError("the coordinator did not answer what the job is");
  }
  return answer.job();
}

void decline(World& world, const std::exception& why) {
  wire::ToCoordinator message;
  *message.mutable_abort() = to_abort(why);
  post_to_coordinator(world.transport(), message);
  world.transport().close(world.now() + farewell);
}

MemberLink::MemberLink(World& world, Options options)
    : world_(world),
      options_(std::move(options)),
      changed_(world.make_event()),
      beat_now_(world.make_event()),
      stop_asked_(world.make_event()) {
  options_.join.set_address(world.transport().address());
}

MemberLink::~MemberLink() {
  end_tasks();
}

const View& MemberLink::join() {
  wire::ToCoordinator message;
  *message.mutable_join() = options_.join;
  tell(message);
  ear_ = world_.spawn("control", [this] { listen(); });
  heart_ = world_.spawn("heartbeat", [this] { beat(); });
  wait_until([this] { return received_view_.has_value(); });
  view_ = *received_view_;
  for (const Member& member : view_.members) {
    if (member.node != world_.transport().self()) {
      world_.transport().introduce(member.node, member.address);
    }
  }
  const std::scoped_lock lock(mutex_);
  introduced_ = true;
  std::for_each(dropped_.begin(), dropped_.end(), [this](const auto& gone) { give_up(gone); });
  return view_;
}

/// The node may hang in the middle of a message; whoever waits for the rest must not.
void MemberLink::give_up(const wire::Dropped& gone) {
  world_.transport().give_up(NodeId{gone.node()});
}

void MemberLink::set_status_source(std::function<wire::Heartbeat()> source) {
  const std::scoped_lock lock(status_mutex_);
  status_source_ = std::move(source);
}

wire::Heartbeat MemberLink::pull_status() {
  const std::scoped_lock lock(status_mutex_);
  if (status_source_) {
    last_status_ = status_source_();
  }
  return last_status_;
}

std::optional<std::string> MemberLink::stop_reason() const {
  const std::scoped_lock lock(mutex_);
  return stop_reason_;
}

bool MemberLink::job_is_complete() const {
  const std::scoped_lock lock(mutex_);
  return complete_;
}

bool MemberLink::sleep_unless_stopped(TimePoint when) {
  while (world_.now() < when && !stop_reason()) {
    stop_asked_->wait(when);
  }
  return !stop_reason();
}

void MemberLink::report_complete() {
  wire::ToCoordinator message;
  message.mutable_complete();
  tell(message);
}

std::optional<double> MemberLink::speed_share() const {
  const std::scoped_lock lock(mutex_);
  return speed_share_;
}

void MemberLink::check() const {
  const std::scoped_lock lock(mutex_);
  if (ended_) {
    std::rethrow_exception(ended_);
  }
}

std::vector<wire::Dropped> MemberLink::take_dropped() {
  const std::scoped_lock lock(mutex_);
  const std::size_t told = std::exchange(taken_, dropped_.size());
  return {dropped_.begin() + static_cast<std::ptrdiff_t>(told), dropped_.end()};
}

void MemberLink::barrier() {
  const std::uint64_t mine = arrive();
  wait_until([this, mine] { return released_ >= mine; });
}

wire::PacerMemory MemberLink::restart(const std::optional<wire::PacerMemory>& pacer,
                                      const std::function<void()>& on_loss) {
  wire::Arrived arrived;
  arrived.set_restarts(true);
  if (pacer) {
    *arrived.mutable_pacer() = *pacer;
  }
  const std::uint64_t mine = arrive(arrived);
  std::size_t known = 0;
  do {
    known = lost().size();
    on_loss();
    wait_until([&] { return released_ >= mine || dropped_.size() > known; });
  } while (lost().size() > known);
  const std::scoped_lock lock(mutex_);
  return released_pacer_;
}

std::uint64_t MemberLink::arrive(const wire::Arrived& arrived) {
  wire::ToCoordinator message;
  *message.mutable_arrived() = arrived;
  message.mutable_arrived()->set_barrier(++barriers_);
  tell(message);
  return barriers_;
}

void MemberLink::wait_until(const std::function<bool()>& ready) {
  const auto is_ready = [&] {
    const std::scoped_lock lock(mutex_);
    return ready();
  };
  // Asked before the first wait: an earlier one may have taken the notification.
  while (!is_ready()) {
    changed_->wait(no_deadline);
  }
}

void MemberLink::report(const wire::Evaluation& evaluation) {
  wire::ToCoordinator message;
  *message.mutable_evaluation() = evaluation;
  tell(message);
}

void MemberLink::report(const wire::Checkpoint& checkpoint) {
  wire::ToCoordinator message;
  *message.mutable_checkpoint() = checkpoint;
  tell(message);
}

void MemberLink::report(const StepReport& report) {
  wire::ToCoordinator message;
  wire::Stepped& stepped = *message.mutable_stepped();
  stepped.set_round(report.round);
  stepped.set_steps(report.steps);
  stepped.set_samples(report.samples);
  stepped.set_seconds(to_seconds(report.took));
  stepped.set_meets(report.meets);
  stepped.set_communicated_seconds(to_seconds(report.communicated));
  tell(message);
}

PaceOrder MemberLink::order() const {
  const std::scoped_lock lock(mutex_);
  return order_;
}

/// Orders come in the order in which they were given; one without a meeting leaves the last in force.
void MemberLink::follow(const wire::Pace& pace) {
  order_.step_samples = pace.step_samples();
  if (pace.meet_after() > 0) {
    order_.round = pace.round();
    order_.meet_after = pace.meet_after();
  }
}

std::vector<Rank> MemberLink::lost() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Rank> ranks;
  for (const wire::Dropped& gone : dropped_) {
    ranks.push_back(Rank{gone.rank()});
  }
  return ranks;
}

Duration MemberLink::report_wait(const LongWait& wait) {
  const auto report = std::make_shared<WaitReport>(WaitReport{world_.make_event()});
  wire::ToCoordinator message;
  wire::Missing& missing = *message.mutable_missing();
  missing = to_wire(wait);
  missing.set_step(pull_status().step());
  {
    const std::scoped_lock lock(mutex_);
    missing.set_wait(++reports_);
    unanswered_.emplace(reports_, report);
  }
  tell(message);
  report->answered->wait(world_.now() + time_to_judge);
  const std::scoped_lock lock(mutex_);
  unanswered_.erase(missing.wait());
  if (!report->more) {
    throw TimedOut(fmt::format("the coordinator did not answer for {:.0f} s whether to wait on: {}",
                               to_seconds(time_to_judge), missing.operation()));
  }
  return *report->more;
}

/// To a report that has been given up nothing is to be said.
void MemberLink::extend(const wire::MoreTime& answer) {
  const auto report = unanswered_.find(answer.wait());
  if (report != unanswered_.end()) {
    report->second->more = from_seconds(answer.seconds());
    report->second->answered->notify();
  }
}

void MemberLink::finished() {
  const std::uint64_t barrier = arrive();
  const std::scoped_lock lock(mutex_);
  last_barrier_ = barrier;
}

bool MemberLink::all_finished() const {
  const std::scoped_lock lock(mutex_);
  return last_barrier_ && released_ >= *last_barrier_;
}

bool MemberLink::await_more(std::size_t known, TimePoint deadline) {
  // Asked before the first wait, and after the last: a notification may have been another's.
  const auto is_ready = [&] { return lost().size() > known || all_finished(); };
  while (!is_ready()) {
    if (!changed_->wait(deadline)) {
      return is_ready();
    }
  }
  return true;
}

void MemberLink::fail(const std::exception& error) {
  const std::exception_ptr original = std::current_exception();
  wire::ToCoordinator message;
  // Who was lost, and why, the coordinator finds out by itself.
  if (!dynamic_cast<const PeerLost*>(&error)) {
    *message.mutable_abort() = to_abort(error);
    tell(message);
  }
  world_.sleep_for(
      time_to_explain);  // the answer cancels the node, and so ends this with its error
  std::rethrow_exception(original);
}

void MemberLink::leave(const wire::Leave& leave) {
  {
    const std::scoped_lock lock(mutex_);
    leaving_ = true;
  }
  wire::ToCoordinator message;
  *message.mutable_leave() = leave;
  tell(message);
  world_.transport().close(world_.now() + farewell);
  end_tasks();
}

void MemberLink::end_tasks() {
  {
    const std::scoped_lock lock(mutex_);
    leaving_ = true;
  }
  if (heart_ || ear_) {
    world_.cancel(std::make_exception_ptr(Cancelled("this member has left its job")));
  }
  heart_.reset();
  ear_.reset();
}

void MemberLink::beat() {
  try {
    for (;;) {
      wire::ToCoordinator message;
      *message.mutable_heartbeat() = pull_status();
      message.mutable_heartbeat()->set_progress(progress_);
      tell(message);
      beat_now_->wait(world_.now() + options_.heartbeat_every);
    }
  } catch (const Error&) {
    // The node was cancelled: `listen` or `end_tasks` did it and told why.
    return;
  }
}

void MemberLink::listen() {
  try {
    for (;;) {
      const Message message =
          world_.transport().receive(coordinator_node, tags::from_coordinator, no_deadline);
      handle(wire::decode_from_coordinator(message.payload));
    }
  } catch (const PeerLost&) {
    const bool expected = [this] {
      const std::scoped_lock lock(mutex_);
      return leaving_;
    }();
    if (!expected) {
      end_job(std::make_exception_ptr(
          PeerLost(coordinator_node, "the coordinator died, so this job cannot go on")));
    }
  } catch (const Error&) {
    end_job(std::current_exception());
  }
}

void MemberLink::end_job(const std::exception_ptr& why) {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = ended_ ? ended_ : why;
  }
  world_.cancel(why);
}

void MemberLink::handle(const wire::FromCoordinator& message) {
  {
    const std::scoped_lock lock(mutex_);
    switch (message.body_case()) {
      case wire::FromCoordinator::kView: received_view_ = from_wire(message.view()); break;
      case wire::FromCoordinator::kReleased: pass(message.released()); break;
      case wire::FromCoordinator::kPace: follow(message.pace()); break;
      case wire::FromCoordinator::kSpeedShare: speed_share_ = message.speed_share().share(); break;
      case wire::FromCoordinator::kStop:
        stop_reason_ = message.stop().reason();
        complete_ = complete_ || message.stop().complete();
        break;
      case wire::FromCoordinator::kMoreTime: extend(message.more_time()); break;
      case wire::FromCoordinator::kAbort:
        ended_ = to_error(message.abort());
        world_.cancel(ended_);
        break;
      case wire::FromCoordinator::kDropped:
        dropped_.push_back(message.dropped());
        if (introduced_) {
          give_up(message.dropped());
        }
        break;
      case wire::FromCoordinator::kJob:
      case wire::FromCoordinator::BODY_NOT_SET:
        throw ProtocolError("the coordinator sent a control message that nobody asked for");
    }
  }
  changed_->notify();
  if (message.released().restarts()) {
    beat_now_->notify();  // from here on as in a run that is resumed
  }
  if (message.has_stop()) {
    stop_asked_->notify();
  }
}

/// What was said of the pace before a restart is not said in a run that is resumed there.
void MemberLink::pass(const wire::Released& released) {
  released_ = released.barrier();
  if (released.restarts()) {
    released_pacer_ = released.pacer();
    speed_share_.reset();
  }
}

void MemberLink::tell(const wire::ToCoordinator& message) {
  post_to_coordinator(world_.transport(), message);
}

}  // namespace syncopate
