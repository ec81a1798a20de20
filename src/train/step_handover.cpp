#include "train/step_handover.hpp"

#include <utility>

#include "base/errors.hpp"

namespace syncopate {
namespace {

/// A waiting worker shows this often that its program computes.
constexpr Duration progress_every = std::chrono::milliseconds(250);

}  // namespace

void StepHandover::begin() {
  MutexLock lock(mutex_);
  await_turn(lock);
}

void StepHandover::step(const LoopStep& step) {
  {
    const MutexLock lock(mutex_);
    step_ = step;
    asking_ = false;
  }
  wake_worker();
  MutexLock lock(mutex_);
  await_turn(lock);
}

void StepHandover::await_turn(MutexLock& lock) {
  turned_.wait(lock.native(), [this]() REQUIRES(mutex_) { return asking_ || ended_; });
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  if (ended_) {
    throw Cancelled("the job has ended, so the program's loop can take no further step");
  }
}

void StepHandover::leave() {
  {
    const MutexLock lock(mutex_);
    left_ = true;
  }
  wake_worker();
}

void StepHandover::abandon(const std::string& reason) {
  {
    const MutexLock lock(mutex_);
    abandoned_ = reason;
  }
  wake_worker();
}

/// The world's mutex is not taken under this object's.
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

void StepHandover::attach(World& world) {
  const MutexLock lock(mutex_);
  world_ = &world;
  stepped_ = world.make_event();
}

std::optional<LoopStep> StepHandover::take() {
  const MutexLock lock(mutex_);
  if (!abandoned_.empty()) {
    throw Error(abandoned_);
  }
  return std::exchange(step_, std::nullopt);
}

std::optional<LoopStep> StepHandover::next(const std::function<void()>& progressed) {
  std::shared_ptr<Event> stepped;
  {
    const MutexLock lock(mutex_);
    asking_ = true;
    stepped = stepped_;
  }
  turned_.notify_all();
  for (;;) {
    if (const auto step = take()) {
      return step;
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
