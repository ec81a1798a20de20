#include "train/step_handover.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"

namespace syncopate {
namespace {

/// A waiting worker shows this often that its program computes.
constexpr Duration progress_every = std::chrono::milliseconds(250);

/// For the coordinator to end the job of a program that is interrupted.
constexpr Duration time_to_end = std::chrono::seconds(2);

}  // namespace

void StepHandover::begin() {
  MutexLock lock(mutex_);
  await_turn(lock);
}

void StepHandover::begin_pass(std::uint32_t samples) {
  {
    const MutexLock lock(mutex_);
    begun_ = samples;
  }
  wake_worker();
  MutexLock lock(mutex_);
  await(lock, [this]() REQUIRES(mutex_) { return turn_ == Turn::receives || ended_; });
  throw_if_ended();
}

/// The sink may take the world's mutex under this one; no thread takes them in the other order.
void StepHandover::ready(std::size_t begin, std::size_t end) {
  const MutexLock lock(mutex_);
  if (sink_ != nullptr) {
    sink_->ready(begin, end);
  }
}

void StepHandover::step(const LoopStep& step) {
  {
    const MutexLock lock(mutex_);
    step_ = step;
    turn_ = Turn::works;
  }
  wake_worker();
  MutexLock lock(mutex_);
  await_turn(lock);
}

void StepHandover::take_replica() {
  {
    const MutexLock lock(mutex_);
    replica_is_set_ = true;
  }
  wake_worker();
  MutexLock lock(mutex_);
  await(lock, [this]() REQUIRES(mutex_) { return !replica_is_set_ || ended_; });
  throw_if_ended();
}

void StepHandover::await_turn(MutexLock& lock) {
  await(lock, [this]() REQUIRES(mutex_) { return turn_ != Turn::works || ended_; });
  throw_if_ended();
}

template <class Ready>
void StepHandover::await(MutexLock& lock, const Ready& ready) {
  if (!interruption::wait(lock, turned_, ready)) {
    end_worker(lock);
    throw interruption::Interrupted();
  }
}

void StepHandover::end_worker(MutexLock& lock) NO_THREAD_SAFETY_ANALYSIS {
  lock.unlock();
  abandon(interruption::reason);
  lock.lock();
  await_end_of_abandoned(lock);
}

/// A coordinator that does not answer leaves the worker where it waits.
void StepHandover::await_end_of_abandoned(MutexLock& lock) {
  const auto has_ended = [this]() REQUIRES(mutex_) { return ended_; };
  if (!turned_.wait_for(lock.native(), time_to_end, has_ended)) {
    if (world_ != nullptr) {
      world_->cancel(std::make_exception_ptr(Error(interruption::reason)));
    }
    turned_.wait(lock.native(), has_ended);
  }
}

void StepHandover::await_end() {
  MutexLock lock(mutex_);
  if (!abandoned_.empty()) {
    await_end_of_abandoned(lock);
    return;
  }
  await(lock, [this]() REQUIRES(mutex_) { return ended_; });
}

void StepHandover::throw_if_ended() const {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  if (ended_) {
    throw Cancelled(
        fmt::format("the job has ended{}, so the program's loop can take no further step",
                    stopped_by_.empty() ? "" : fmt::format(" ({})", stopped_by_)));
  }
}

void StepHandover::leave() {
  {
    const MutexLock lock(mutex_);
    left_ = true;
  }
  wake_worker();
}

/// The worker may wait for others, also on its way out of `next`: the end of the job ends that.
void StepHandover::abandon(const std::string& reason) {
  {
    const MutexLock lock(mutex_);
    if (!abandoned_.empty()) {
      return;
    }
    abandoned_ = reason;
    if (end_job_) {
      end_job_(reason);
    }
  }
  wake_worker();
}

/// Notifies when the mutex is free again: the worker takes it first.
void StepHandover::wake_worker() {
  std::shared_ptr<Event> stepped;
  {
    const MutexLock lock(mutex_);
    stepped = stepped_;
  }
  if (stepped) {
    stepped->notify();
  }
}

bool StepHandover::has_ended() const {
  const MutexLock lock(mutex_);
  return ended_;
}

bool StepHandover::has_left() const {
  const MutexLock lock(mutex_);
  return left_;
}

void StepHandover::attach(World& world, JobEnd end_job) {
  const MutexLock lock(mutex_);
  world_ = &world;
  end_job_ = std::move(end_job);
  stepped_ = world.make_event();
}

void StepHandover::detach(const std::string& stopped_by) {
  const MutexLock lock(mutex_);
  end_job_ = {};
  stopped_by_ = stopped_by;
}

void StepHandover::expect_not_abandoned() const {
  if (!abandoned_.empty()) {
    throw Error(abandoned_);
  }
}

std::optional<std::uint32_t> StepHandover::samples_begun() const {
  const MutexLock lock(mutex_);
  expect_not_abandoned();
  return step_ ? std::optional(step_->samples) : begun_;
}

std::optional<LoopStep> StepHandover::take() {
  const MutexLock lock(mutex_);
  expect_not_abandoned();
  if (step_) {
    begun_.reset();
  }
  return std::exchange(step_, std::nullopt);
}

template <class Came>
auto StepHandover::await_loop(const std::function<void()>& progressed, const Came& came)
    -> decltype(came()) {
  std::shared_ptr<Event> stepped;
  {
    const MutexLock lock(mutex_);
    stepped = stepped_;
  }
  for (;;) {
    take_set_replica();
    if (const auto found = came()) {
      return found;
    }
    if (has_left()) {
      return std::nullopt;
    }
    stepped->wait(world_->now() + progress_every);
    if (progressed) {
      progressed();
    }
  }
}

/// The program waits meanwhile.
void StepHandover::take_set_replica() {
  {
    const MutexLock lock(mutex_);
    if (!replica_is_set_) {
      return;
    }
  }
  replica_set_();
  {
    const MutexLock lock(mutex_);
    replica_is_set_ = false;
  }
  turned_.notify_all();
}

std::optional<std::uint32_t> StepHandover::samples_of_pass(
    const std::function<void()>& progressed) {
  {
    const MutexLock lock(mutex_);
    turn_ = Turn::asks;
  }
  turned_.notify_all();
  return await_loop(progressed, [this] { return samples_begun(); });
}

/// The loop has its turn, unless it has handed over its step already.
void StepHandover::receive(GradientSink* sink) {
  {
    const MutexLock lock(mutex_);
    sink_ = sink;
    if (!step_) {
      turn_ = Turn::receives;
    }
  }
  turned_.notify_all();
}

std::optional<LoopStep> StepHandover::next(const std::function<void()>& progressed,
                                           GradientSink* sink) {
  /// The sink may be gone after `next`, also where it throws.
  class Receiving {
   public:
    Receiving(StepHandover& loop, GradientSink* to) : loop_(loop) { loop_.receive(to); }
    ~Receiving() {
      const MutexLock lock(loop_.mutex_);
      loop_.sink_ = nullptr;
    }
    Receiving(const Receiving&) = delete;
    Receiving& operator=(const Receiving&) = delete;

   private:
    StepHandover& loop_;
  };
  const Receiving receiving(*this, sink);
  return await_loop(progressed, [this] { return take(); });
}

void StepHandover::end(std::exception_ptr failure) {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    failure_ = std::move(failure);
    stepped_.reset();  // before its world
  }
  turned_.notify_all();
}

}  // namespace syncopate
