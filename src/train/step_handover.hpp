#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/interruption.hpp"
#include "base/mutex.hpp"
#include "runtime/world.hpp"
#include "scheme/replica.hpp"
#include "train/program_waits.hpp"

namespace syncopate {

/// A step of a program's own loop: its mean gradient is in the replica.
struct LoopStep {
  std::uint32_t samples = 0;
  double loss_sum = std::numeric_limits<double>::quiet_NaN();  ///< NaN: the loop does not say it
  StepSettings settings{};
  GradientSet gradients{};
};

/// Passes control between a program's own loop and the task of its worker, of which one runs at a
/// time: the loop computes gradients, the worker does with them what the scheme says.
///
/// Order:   the worker calls `attach`, then `next` repeatedly, each time after `samples_of_pass` or
///          without it, and `end` at its end. The loop calls `begin`, then `step` repeatedly, then
///          `leave`. Before a step it may call `begin_pass` once, and then `ready`.
/// Threads: one thread calls the loop's side, the worker's task the other; `has_left` any.
class StepHandover {
 public:
  /// Gets what the worker logs of each round, one line of JSON, in the worker's task.
  using RoundListener = std::function<void(const std::string& line)>;
  /// Before the worker's task begins.
  void on_round(RoundListener listener) { round_listener_ = std::move(listener); }
  const RoundListener& round_listener() const { return round_listener_; }

  /// What the program waits for outside its steps. Before the worker's task begins.
  void use_waits(std::shared_ptr<const ProgramWaits> waits) { waits_ = std::move(waits); }
  const std::shared_ptr<const ProgramWaits>& waits() const { return waits_; }

  // The loop's side. Errors of `begin`, `begin_pass`, `step` and `take_replica`: the error that
  // ended the worker; Cancelled, where the job ended before the loop left, and where the program is
  // interrupted while it waits in one of them (`interruption`): this abandons the loop, and ends
  // the worker.

  /// Blocks until the worker asks for the first gradient: the parameters are those to start with.
  void begin();
  /// The gradient of the next step, of that many samples, is about to become final, value by value.
  /// Blocks until the worker can take it.
  void begin_pass(std::uint32_t samples);
  /// Values [begin, end) of the flat gradient are final. The loop neither reads nor writes them
  /// before the end of its step. Errors: those of the worker's sink.
  void ready(std::size_t begin, std::size_t end);
  /// Hands over a gradient, of as many samples as its pass was begun with. Blocks until the worker
  /// asks for the next one: the parameters are then those to compute it with.
  void step(const LoopStep& step);
  /// Between two steps: the program has set the parameters and buffers, as those of all workers do.
  /// Blocks until the worker has taken them.
  void take_replica();
  /// No step follows.
  void leave();
  /// The program ends its loop by an error, which ends the job, whatever the worker does: `next`
  /// throws an Error of `reason`. The first reason counts.
  void abandon(const std::string& reason);
  /// Waits for the end of the worker's task, after `leave`. Errors: Cancelled, as `step`, if the
  /// program is interrupted.
  void await_end();
  /// True once the worker's task has ended.
  bool has_ended() const;

  // The worker's side.

  /// Ends the job for all workers by an error, whatever the worker does. From any thread.
  using JobEnd = std::function<void(const std::string& reason)>;
  /// The worker runs in `world`, which outlives every later call of `next`, and `end_job` until
  /// `detach`.
  void attach(World& world, JobEnd end_job = {});
  /// `stopped_by`: why the coordinator has stopped the training; empty: it has not.
  void detach(const std::string& stopped_by = {});
  /// What the worker does when the program has set its replica; called in `samples_of_pass` and
  /// `next`.
  void on_replica_set(std::function<void()> called) { replica_set_ = std::move(called); }
  /// Waits until the loop begins a pass, hands over a step, or leaves, and calls `progressed` from
  /// time to time meanwhile. Returns the samples of the step; empty once the loop has left.
  /// Errors: Error, of a loop that was abandoned; the error that cancelled the world.
  std::optional<std::uint32_t> samples_of_pass(const std::function<void()>& progressed);
  /// Waits in the same way for the loop's next step. `sink`, if any, gets what is `ready` before,
  /// in the loop's thread. Empty once the loop has left. Errors: those of `samples_of_pass`.
  std::optional<LoopStep> next(const std::function<void()>& progressed,
                               GradientSink* sink = nullptr);
  /// The worker's task ends, with an error or without one.
  void end(std::exception_ptr failure);

  bool has_left() const;

 private:
  /// What the worker does.
  enum class Turn {
    works,
    asks,      ///< it waits for a pass or a step
    receives,  ///< it waits for a step, and takes what is ready before
  };

  void await_turn(MutexLock& lock) REQUIRES(mutex_);
  /// Errors: Cancelled, once the worker has ended, if the program is interrupted.
  template <class Ready>
  void await(MutexLock& lock, const Ready& ready) REQUIRES(mutex_);
  void end_worker(MutexLock& lock) REQUIRES(mutex_);
  void await_end_of_abandoned(MutexLock& lock) REQUIRES(mutex_);
  void throw_if_ended() const REQUIRES(mutex_);
  void wake_worker();
  /// Blocks the worker's task until `came` returns something, or the loop has left.
  template <class Came>
  auto await_loop(const std::function<void()>& progressed, const Came& came) -> decltype(came());
  void take_set_replica();
  void receive(GradientSink* sink);
  void expect_not_abandoned() const REQUIRES(mutex_);
  std::optional<std::uint32_t> samples_begun() const;
  std::optional<LoopStep> take();

  mutable Mutex mutex_;
  std::condition_variable turned_;  ///< the turn has changed, or the worker has ended
  Turn turn_ GUARDED_BY(mutex_) = Turn::works;
  std::optional<std::uint32_t> begun_ GUARDED_BY(mutex_);  ///< samples of the pass under way
  GradientSink* sink_ GUARDED_BY(mutex_) = nullptr;        ///< while the worker is in `next`
  bool left_ GUARDED_BY(mutex_) = false;
  bool replica_is_set_ GUARDED_BY(mutex_) = false;  ///< and the worker has not taken it
  bool ended_ GUARDED_BY(mutex_) = false;
  std::optional<LoopStep> step_ GUARDED_BY(mutex_);
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  std::string abandoned_ GUARDED_BY(mutex_);  ///< the reason; empty: it is not
  World* world_ = nullptr;
  std::function<void()> replica_set_;
  std::string stopped_by_ GUARDED_BY(mutex_);
  JobEnd end_job_ GUARDED_BY(mutex_);
  RoundListener round_listener_;                       ///< may be empty
  std::shared_ptr<const ProgramWaits> waits_;          ///< null: none are known
  std::shared_ptr<Event> stepped_ GUARDED_BY(mutex_);  ///< null before `attach`
};

}  // namespace syncopate
