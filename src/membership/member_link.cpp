#include "membership/member_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/interruption.hpp"
#include "runtime/member_ends.hpp"
#include "transport/tags.hpp"
#include "wire/control.hpp"

namespace syncopate {
namespace {

constexpr Duration abort_limit = std::chrono::seconds(3);
constexpr Duration leaving_limit = std::chrono::seconds(10);
/// Time for which a member counts as standing by, or as waiting, after it has reported this.
constexpr Duration recent = 2 * std::max(MemberLink::stand_by_every, Waits::alive_every);

wire::Missing to_wire(const LongWait& wait) {
  wire::Missing missing;
  for (const Rank rank : wait.ranks) {
    missing.add_ranks(rank.value);
  }
  missing.set_operation(wait.operation);
  missing.set_waited_seconds(to_seconds(wait.waited));
  missing.set_usual_seconds(to_seconds(wait.usual));
  missing.set_limit_seconds(to_seconds(wait.limit));
  for (const Rank server : wait.servers) {
    missing.add_servers(server.value);
  }
  return missing;
}

}  // namespace

MemberLink::MemberLink(World& world, Options options)
    : world_(world),
      options_(std::move(options)),
      changed_(world.make_event()),
      heartbeat_now_(world.make_event()),
      stop_requested_(world.make_event()) {}

MemberLink::~MemberLink() {
  end_tasks();
}

void MemberLink::listen() {
  receive_loop_ = world_.spawn("control", [this] { receive(); });
  heartbeat_task_ = world_.spawn("heartbeat", [this] { send_heartbeats(); });
}

const View& MemberLink::join() {
  wire::ToCoordinator message;
  *message.mutable_join() = options_.join;
  message.mutable_join()->set_address(world_.transport().address());
  send(message);
  if (!receive_loop_) {
    listen();
  }
  wait_until([this]() REQUIRES(mutex_) { return state_.view().has_value(); });
  {
    const MutexLock lock(mutex_);
    view_ = *state_.view();
  }
  for (const Member& member : view_.members) {
    introduce(member);
  }
  const MutexLock lock(mutex_);
  introduced_ = true;
  for (const wire::Dropped& worker : state_.dropped()) {
    give_up(worker);
  }
  if (const auto& evaluator = state_.dropped_evaluator()) {
    give_up(*evaluator);
  }
  for (const Member& evaluator : state_.evaluators()) {
    introduce(evaluator);
  }
  return view_;
}

void MemberLink::introduce(const Member& member) {
  if (member.node != world_.transport().self()) {
    world_.transport().introduce(member.node, member.address);
  }
}

/// The member may hang in the middle of a message; a task that waits for the rest of it must not.
void MemberLink::give_up(const wire::Dropped& member) {
  world_.transport().give_up(NodeId{member.node()});
}

void MemberLink::set_status_source(std::function<wire::Heartbeat()> source) {
  const MutexLock lock(status_mutex_);
  status_source_ = std::move(source);
}

wire::Heartbeat MemberLink::pull_status() {
  const MutexLock lock(status_mutex_);
  if (status_source_) {
    last_status_ = status_source_();
  }
  return last_status_;
}

std::optional<std::string> MemberLink::stop_reason() const {
  const MutexLock lock(mutex_);
  return state_.stop_reason();
}

std::optional<TimePoint> MemberLink::stopped_at() const {
  const MutexLock lock(mutex_);
  return stopped_at_;
}

bool MemberLink::job_is_complete() const {
  const MutexLock lock(mutex_);
  return state_.is_complete();
}

bool MemberLink::sleep_unless_stopped(TimePoint when) {
  while (world_.now() < when && !stop_reason()) {
    stop_requested_->wait(when);
  }
  return !stop_reason();
}

void MemberLink::report_complete(Limit reached) {
  wire::ToCoordinator message;
  message.mutable_complete()->set_out_of_time(reached == Limit::time);
  send(message);
}

std::optional<double> MemberLink::speed_share() const {
  const MutexLock lock(mutex_);
  return state_.speed_share();
}

void MemberLink::check() const {
  if (const auto why = ended()) {
    std::rethrow_exception(why);
  }
}

std::vector<wire::Dropped> MemberLink::take_dropped() {
  const MutexLock lock(mutex_);
  return state_.take_dropped();
}

std::optional<NodeId> MemberLink::evaluator() const {
  const MutexLock lock(mutex_);
  return state_.evaluator();
}

std::uint64_t MemberLink::bytes_to_evaluators() const {
  const MutexLock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const Member& evaluator : state_.evaluators()) {
    bytes += world_.transport().traffic_to(evaluator.node).bytes_sent;
  }
  return bytes;
}

void MemberLink::barrier() {
  const std::uint64_t mine = arrive();
  wait_until([this, mine]() REQUIRES(mutex_) { return state_.released() >= mine; });
}

wire::PacerMemory MemberLink::restart(const std::optional<wire::PacerMemory>& pacer,
                                      const DeviceMeasurement& device,
                                      const std::function<void()>& on_loss) {
  wire::Arrived arrived;
  arrived.set_restarts(true);
  if (pacer) {
    *arrived.mutable_pacer() = *pacer;
  }
  arrived.set_samples_per_second(device.samples_per_second);
  arrived.set_efficient_samples(device.efficient_samples);
  const std::uint64_t mine = arrive(arrived);
  std::size_t known = 0;
  do {
    known = lost().size();
    on_loss();
    wait_until([&]() REQUIRES(mutex_) {
      return state_.released() >= mine || state_.dropped().size() > known;
    });
  } while (lost().size() > known);
  const MutexLock lock(mutex_);
  return state_.pacer();
}

std::uint64_t MemberLink::arrive(const wire::Arrived& arrived) {
  wire::ToCoordinator message;
  *message.mutable_arrived() = arrived;
  message.mutable_arrived()->set_barrier(++barriers_);
  send(message);
  return barriers_;
}

void MemberLink::wait_until(const std::function<bool()>& ready) {
  const auto is_ready = [&] {
    const MutexLock lock(mutex_);
    return ready();
  };
  // Checks before the first wait: an earlier wait may have taken the notification.
  while (!is_ready()) {
    wait_standing_by(*changed_, no_deadline);
  }
}

/// Returns false at the deadline.
bool MemberLink::wait_standing_by(Event& event, TimePoint deadline) {
  const TimePoint begun = world_.now();
  for (;;) {
    stands_by();
    const TimePoint until = std::min(deadline, world_.now() + stand_by_every);
    if (event.wait(until)) {
      return true;
    }
    if (world_.now() - begun >= interruption::every) {
      interruption::throw_if_requested();
    }
    if (until == deadline) {
      return false;
    }
  }
}

Message MemberLink::receive_standing_by(NodeId from, Tag tag) {
  for (;;) {
    stands_by();
    if (auto message = world_.transport().try_receive(from, tag, world_.now() + stand_by_every)) {
      return std::move(*message);
    }
    check();
  }
}

void MemberLink::receive_standing_by(NodeId from, Tag tag, std::span<std::byte> into) {
  const auto receive = world_.transport().start_receive(from, tag, into);
  for (;;) {
    stands_by();
    try {
      return receive->wait(world_.now() + stand_by_every);
    } catch (const TimedOut&) {
      check();
    }
  }
}

void MemberLink::report(const wire::Evaluation& evaluation) {
  wire::ToCoordinator message;
  *message.mutable_evaluation() = evaluation;
  send(message);
}

void MemberLink::report(const wire::Checkpoint& checkpoint) {
  wire::ToCoordinator message;
  *message.mutable_checkpoint() = checkpoint;
  send(message);
}

std::vector<Rank> MemberLink::lost() const {
  const MutexLock lock(mutex_);
  return state_.lost();
}

Duration MemberLink::report_wait(const LongWait& wait) {
  const auto report = std::make_shared<WaitReport>(WaitReport{world_.make_event()});
  wire::ToCoordinator message;
  wire::Missing& missing = *message.mutable_missing();
  missing = to_wire(wait);
  missing.set_step(pull_status().step());
  {
    const MutexLock lock(mutex_);
    missing.set_wait(++reports_);
    unanswered_.emplace(reports_, report);
  }
  send(message);
  // A coordinator that is suspended answers when it returns; the loss of one ends this wait.
  while (!is_answered(*report)) {
    report->answered->wait(no_deadline);
  }
  const MutexLock lock(mutex_);
  unanswered_.erase(missing.wait());
  return *report->more;
}

bool MemberLink::is_answered(const WaitReport& report) const {
  const MutexLock lock(mutex_);
  return report.more.has_value();
}

/// An answer to a report that was given up has no effect.
void MemberLink::extend(const wire::MoreTime& answer) {
  const auto report = unanswered_.find(answer.wait());
  if (report != unanswered_.end()) {
    report->second->more = from_seconds(answer.seconds());
    report->second->answered->notify();
  }
}

void MemberLink::finished() {
  const std::uint64_t barrier = arrive();
  const MutexLock lock(mutex_);
  last_barrier_ = barrier;
}

bool MemberLink::all_finished() const {
  const MutexLock lock(mutex_);
  return last_barrier_ && state_.released() >= *last_barrier_;
}

bool MemberLink::await_more(std::size_t known, TimePoint deadline) {
  // Checked before the first wait and after the last: another wait may take the notification.
  const auto is_ready = [&] { return lost().size() > known || all_finished(); };
  while (!is_ready()) {
    if (!wait_standing_by(*changed_, deadline)) {
      return is_ready();
    }
  }
  return true;
}

void MemberLink::fail(const std::exception& error) {
  const std::exception_ptr original = std::current_exception();
  wire::ToCoordinator message;
  // The coordinator finds out by itself which peer was lost, and why.
  if (!dynamic_cast<const PeerLost*>(&error)) {
    *message.mutable_abort() = to_abort(error);
    send(message);
  }
  world_.sleep_for(abort_limit);  // the answer cancels the node, and so ends this with its error
  std::rethrow_exception(original);
}

void MemberLink::leave(const wire::Leave& leave) {
  if (!options_.stays) {
    expect_end();
  }
  wire::ToCoordinator message;
  *message.mutable_leave() = leave;
  send(message);
  if (!options_.stays) {
    close(leaving_limit);
  }
}

void MemberLink::close(Duration limit) {
  expect_end();
  world_.transport().close(world_.now() + limit);
  end_tasks();
}

/// The coordinator may leave from now on.
void MemberLink::expect_end() {
  const MutexLock lock(mutex_);
  leaving_ = true;
}

void MemberLink::end_tasks() {
  expect_end();
  if (heartbeat_task_ || receive_loop_) {
    world_.cancel(std::make_exception_ptr(Cancelled("this member has left its job")));
  }
  heartbeat_task_.reset();
  receive_loop_.reset();
}

bool MemberLink::is_recent(TimePoint sign) const {
  return sign != TimePoint::min() && world_.now() - sign < recent;
}

void MemberLink::send_heartbeats() {
  try {
    for (;;) {
      wire::ToCoordinator message;
      *message.mutable_heartbeat() = pull_status();
      message.mutable_heartbeat()->set_progress(progress_);
      message.mutable_heartbeat()->set_pings(pings_);
      clock_probe_.stamp(*message.mutable_heartbeat(), world_.now());
      message.mutable_heartbeat()->set_standing_by(is_recent(stood_by_));
      message.mutable_heartbeat()->set_waiting(is_recent(waited_));
      send(message);
      heartbeat_now_->wait(world_.now() + options_.heartbeat_every);
    }
  } catch (const Error&) {
    // `receive` or `end_tasks` has cancelled the node, with the reason.
  } catch (const std::exception&) {
    end_job(std::current_exception());
  }
}

void MemberLink::receive() {
  try {
    for (;;) {
      const Message message =
          world_.transport().receive(coordinator_node, tags::from_coordinator, no_deadline);
      handle(wire::decode_from_coordinator(message.payload));
    }
  } catch (const PeerLost&) {
    if (const auto who = unexpected_loss()) {
      end_job(std::make_exception_ptr(
          MemberLost(coordinator_node, member_ends::died_at_the_head(*who))));
    }
  } catch (const std::exception&) {
    end_job(std::current_exception());
  }
}

void MemberLink::end_job(const std::exception_ptr& why) {
  {
    const MutexLock lock(mutex_);
    state_.end(why);
  }
  world_.cancel(why);
}

bool MemberLink::is_blamed_by(const wire::FromCoordinator& message) const {
  const auto& hung = message.abort().hung();
  return std::find(hung.begin(), hung.end(), world_.transport().self().value) != hung.end();
}

void MemberLink::handle(const wire::FromCoordinator& message) {
  if (message.has_ping()) {
    pings_ = message.ping().number();
    clock_probe_.ping_came(message.ping(), world_.now());
    return;
  }
  if (options_.blamed && is_blamed_by(message)) {
    options_.blamed(message.abort().reason());
  }
  {
    const MutexLock lock(mutex_);
    state_.apply(message);
    switch (message.body_case()) {
      case wire::FromCoordinator::kStop: stopped_at_ = stopped_at_.value_or(world_.now()); break;
      case wire::FromCoordinator::kMoreTime: extend(message.more_time()); break;
      case wire::FromCoordinator::kEnded:
        leaving_ = true;
        dispatch(message);
        break;
      case wire::FromCoordinator::kAbort:
        world_.cancel(state_.ended());
        dispatch(message);
        break;
      case wire::FromCoordinator::kDropped:
        if (introduced_) {
          give_up(message.dropped());
        }
        break;
      case wire::FromCoordinator::kReplaced:
        if (introduced_) {
          introduce(state_.evaluators().back());
        }
        dispatch(message);
        break;
      default: dispatch(message); break;
    }
  }
  changed_->notify();
  if (message.released().restarts()) {
    heartbeat_now_->notify();  // from here on, heartbeats come as in a resumed run
  }
  if (message.has_stop()) {
    stop_requested_->notify();
  }
}

void MemberLink::on(wire::FromCoordinator::BodyCase kind, Handler handler) {
  const MutexLock lock(mutex_);
  handlers_[kind] = std::move(handler);
}

void MemberLink::dispatch(const wire::FromCoordinator& message) const {
  const auto handler = handlers_.find(message.body_case());
  if (handler != handlers_.end() && handler->second) {
    handler->second(message);
  }
}

void MemberLink::send(const wire::ToCoordinator& message) {
  world_.transport().post(coordinator_node, tags::to_coordinator, wire::encode(message));
}

}  // namespace syncopate
