#include "train/program_waits.hpp"

#include <utility>

namespace syncopate {

void ProgramWaits::loop_is_here() {
  const MutexLock lock(mutex_);
  loop_ = std::this_thread::get_id();
}

void ProgramWaits::loop_ends() {
  const MutexLock lock(mutex_);
  ended_ = true;
}

ProgramWaits::Operation::Operation(ProgramWaits& waits, std::function<std::string()> text)
    : waits_(waits) {
  const MutexLock lock(waits_.mutex_);
  place_ = waits_.operations_.insert(waits_.operations_.end(), std::move(text));
}

ProgramWaits::Operation::~Operation() {
  const MutexLock lock(waits_.mutex_);
  waits_.operations_.erase(place_);
}

ProgramWaits::Wait::Wait(ProgramWaits* waits) : waits_(waits) {
  if (waits_ == nullptr) {
    return;
  }
  const MutexLock lock(waits->mutex_);
  if (waits->loop_ == std::this_thread::get_id()) {
    ++waits->waits_of_loop_;
  } else {
    waits_ = nullptr;
  }
}

ProgramWaits::Wait::~Wait() {
  if (waits_ != nullptr) {
    const MutexLock lock(waits_->mutex_);
    --waits_->waits_of_loop_;
  }
}

std::optional<std::string> ProgramWaits::operation() const {
  const MutexLock lock(mutex_);
  return operations_.empty() ? std::nullopt : std::optional(operations_.front()());
}

bool ProgramWaits::loop_waits() const {
  const MutexLock lock(mutex_);
  return waits_of_loop_ > 0;
}

bool ProgramWaits::loop_has_ended() const {
  const MutexLock lock(mutex_);
  return ended_;
}

}  // namespace syncopate
