#include "pacer/pacer_control.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "transport/tags.hpp"

namespace syncopate {
namespace {

constexpr Duration tick_every = std::chrono::milliseconds(100);
/// A worker receives its share of the speed again when that has changed by more than this fraction.
constexpr double share_tolerance = 0.02;

StepReport from_wire(const wire::Stepped& stepped) {
  return {.round = stepped.round(),
          .steps = stepped.steps(),
          .samples = stepped.samples(),
          .took = from_seconds(stepped.seconds()),
          .synchronizes = stepped.meets(),
          .period = std::max(1U, stepped.period()),
          .communicated = from_seconds(stepped.communicated_seconds()),
          .samples_to_do = stepped.samples_to_do(),
          .ends = stepped.ends(),
          .waits = stepped.waits()};
}

}  // namespace

PacerService::PacerService(World& world, PaceObserver& observer, Pacer::Options options)
    : world_(world), observer_(observer), pacer_(std::move(options)) {}

void PacerService::view_installed(const View& view) {
  view_ = view;
  installed_ = world_.now();
  report_first_paces();
}

/// Workers know the first paces of a new job without a message.
void PacerService::report_first_paces() {
  const PacerState state = pacer_.state();
  if (state.round > 1) {
    return;
  }
  for (std::uint32_t rank = 0; rank < state.workers.size(); ++rank) {
    const PacerState::Worker& worker = state.workers[rank];
    if (worker.reason) {
      observer_.pace_decided({.worker = Rank{rank},
                              .round = worker.round,
                              .sync_after = worker.sync_after,
                              .step_samples = worker.step_samples,
                              .reason = *worker.reason},
                             Duration::zero());
    }
  }
}

bool PacerService::handle(const Member& from, const wire::ToCoordinator& message) {
  if (!message.has_stepped() || from.role != Role::worker) {
    return false;
  }
  const StepReport report = from_wire(message.stepped());
  const Paces paces = pacer_.stepped(from.rank, report, world_.now());
  observer_.stepped(from.rank, report);
  send(paces);
  return true;
}

void PacerService::arrived(const Member& from, const wire::Arrived& arrived) {
  if (from.role != Role::worker) {
    return;
  }
  if (arrived.has_pacer()) {
    pacer_.load(arrived.pacer());
  }
  if (arrived.samples_per_second() > 0) {
    pacer_.expect(from.rank, 1 / arrived.samples_per_second());
  }
  if (arrived.efficient_samples() > 0) {
    pacer_.expect_least(from.rank, arrived.efficient_samples());
  }
}

void PacerService::before_restart(wire::Released& released) {
  *released.mutable_pacer() = pacer_.memory();
  for (const std::uint32_t period : pacer_.periods_at_restart()) {
    released.mutable_pacer()->add_periods(period);
  }
}

/// The pacer's decisions depend only on reports, and on ticks that begin at the restart, so they
/// are the same in a run that is resumed here.
void PacerService::restarted() {
  next_tick_ = world_.now() + tick_every;
  sent_shares_.clear();
  send(pacer_.restart(world_.now()));
}

void PacerService::gone(const Member& member) {
  if (member.role == Role::worker) {
    send(pacer_.left(member.rank, world_.now()));
  }
}

void PacerService::tick() {
  if (!view_ || world_.now() < next_tick_) {
    return;
  }
  next_tick_ = world_.now() + tick_every;
  send(pacer_.time_passed(world_.now()));
  const PacerState state = pacer_.state();
  observer_.paced(state);
  send_speed_shares(state);
}

void PacerService::send_speed_shares(const PacerState& state) {
  const std::vector<double> shares = speed_shares(state);
  sent_shares_.resize(shares.size());
  for (std::uint32_t rank = 0; rank < shares.size(); ++rank) {
    const double change = std::abs(shares[rank] - sent_shares_[rank]);
    if (shares[rank] == 0 || change <= share_tolerance * shares[rank]) {
      continue;
    }
    sent_shares_[rank] = shares[rank];
    wire::FromCoordinator message;
    message.mutable_speed_share()->set_share(shares[rank]);
    send(Rank{rank}, message);
  }
}

void PacerService::send(const Paces& paces) {
  for (const Pace& pace : paces) {
    wire::FromCoordinator message;
    message.mutable_pace()->set_round(pace.round);
    message.mutable_pace()->set_meet_after(pace.sync_after.value_or(0));
    message.mutable_pace()->set_step_samples(pace.step_samples);
    message.mutable_pace()->set_period(pace.period);
    message.mutable_pace()->set_whole(pace.whole);
    send(pace.worker, message);
    observer_.pace_decided(pace, world_.now() - installed_);
  }
}

void PacerService::send(Rank worker, const wire::FromCoordinator& message) {
  const NodeId node = view_->find(Role::worker, worker)->node;
  world_.transport().post(node, tags::from_coordinator, wire::encode(message));
}

std::unique_ptr<ControlHandler> make_pacer_service(World& world, PaceObserver& observer,
                                                   std::optional<Pacer::Options> options) {
  return options ? std::make_unique<PacerService>(world, observer, std::move(*options)) : nullptr;
}

PacerLink::PacerLink(ControlLink& link) : link_(link) {
  link_.on(wire::FromCoordinator::kPace,
           [this](const wire::FromCoordinator& message) { follow(message.pace()); });
}

PacerLink::~PacerLink() {
  link_.on(wire::FromCoordinator::kPace, {});
}

void PacerLink::report(const StepReport& report) {
  wire::ToCoordinator message;
  wire::Stepped& stepped = *message.mutable_stepped();
  stepped.set_round(report.round);
  stepped.set_steps(report.steps);
  stepped.set_samples(report.samples);
  stepped.set_seconds(to_seconds(report.took));
  stepped.set_meets(report.synchronizes);
  stepped.set_period(report.period);
  stepped.set_communicated_seconds(to_seconds(report.communicated));
  stepped.set_samples_to_do(report.samples_to_do);
  stepped.set_ends(report.ends);
  stepped.set_waits(report.waits);
  link_.send(message);
}

PaceOrder PacerLink::order() const {
  const MutexLock lock(mutex_);
  return order_;
}

/// Orders come in the order in which the pacer gave them. An order without `sync_after` keeps the
/// previous one in force.
void PacerLink::follow(const wire::Pace& pace) {
  const MutexLock lock(mutex_);
  order_.step_samples = pace.step_samples();
  order_.period = pace.period();
  order_.whole = pace.whole();
  if (pace.meet_after() > 0) {
    order_.round = pace.round();
    order_.sync_after = pace.meet_after();
  }
}

}  // namespace syncopate
