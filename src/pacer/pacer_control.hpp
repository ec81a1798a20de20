#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "pacer/pacer.hpp"
#include "pacer/pacer_client.hpp"
#include "runtime/control_link.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// Watches a pacer. Called from the coordinator's task, in the order of events.
class PaceObserver {
 public:
  virtual ~PaceObserver() = default;

  /// Every 100 ms.
  virtual void paced(const PacerState& state) = 0;
  /// The pacer has made this decision, `moment` after the view was installed.
  virtual void pace_decided(const Pace& pace, Duration moment) = 0;
  /// A worker has done a step. Called before `pace_decided` for the decisions that follow from it.
  virtual void stepped(Rank worker, const StepReport& report) = 0;
};

/// The coordinator's side of pacing: turns control messages into calls of a `Pacer`, and sends its
/// decisions to the workers.
class PacerService final : public ControlHandler {
 public:
  /// `world` and `observer` outlive this. Errors: those of `Pacer`.
  PacerService(World& world, PaceObserver& observer, Pacer::Options options);

  void view_installed(const View& view) override;
  bool handle(const Member& from, const wire::ToCoordinator& message) override;
  void arrived(const Member& from, const wire::Arrived& arrived) override;
  void before_restart(wire::Released& released) override;
  void restarted() override;
  void gone(const Member& member) override;
  TimePoint next_tick() const override { return next_tick_; }
  void tick() override;

 private:
  void send(Rank worker, const wire::FromCoordinator& message);
  void send(const Paces& paces);
  void send_speed_shares(const PacerState& state);
  void report_first_paces();

  World& world_;
  PaceObserver& observer_;
  Pacer pacer_;
  std::optional<View> view_;
  TimePoint installed_{};  ///< the view
  TimePoint next_tick_{};
  std::vector<double> sent_shares_;  ///< of the workers' speeds, by rank
};

/// Null for a job whose workers are not paced.
std::unique_ptr<ControlHandler> make_pacer_service(World& world, PaceObserver& observer,
                                                   std::optional<Pacer::Options> options);

/// A worker's side of pacing: sends step reports over the member's link, and keeps the last order.
///
/// Thread: any.
class PacerLink final : public PacerClient {
 public:
  /// Constructed before the member joins, so that it misses no order. `link` outlives this.
  explicit PacerLink(ControlLink& link);
  ~PacerLink() override;
  PacerLink(const PacerLink&) = delete;
  PacerLink& operator=(const PacerLink&) = delete;

  void report(const StepReport& report) override;
  PaceOrder order() const override;

 private:
  void follow(const wire::Pace& pace);

  ControlLink& link_;
  mutable Mutex mutex_;
  PaceOrder order_ GUARDED_BY(mutex_);
};

}  // namespace syncopate
