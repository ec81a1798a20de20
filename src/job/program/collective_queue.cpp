#include "job/program/collective_queue.hpp"

#include <utility>

#include "base/errors.hpp"

namespace syncopate {

void PendingOperation::run() {
  std::exception_ptr failure;
  try {
    body_();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  end(failure);
}

void PendingOperation::end(std::exception_ptr failure) {
  {
    const MutexLock lock(mutex_);
    done_ = true;
    failure_ = std::move(failure);
  }
  ended_.notify_all();
}

bool PendingOperation::done() {
  const MutexLock lock(mutex_);
  return done_;
}

void PendingOperation::wait() {
  MutexLock lock(mutex_);
  ended_.wait(lock.native(), [this]() REQUIRES(mutex_) { return done_; });
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

bool PendingOperation::wait_for(Duration limit) {
  MutexLock lock(mutex_);
  const bool ended =
      ended_.wait_for(lock.native(), limit, [this]() REQUIRES(mutex_) { return done_; });
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  return ended;
}

CollectiveQueue::~CollectiveQueue() {
  std::deque<std::shared_ptr<PendingOperation>> dropped;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    while (queued_.size() > 1) {
      dropped.push_front(std::move(queued_.back()));
      queued_.pop_back();
    }
  }
  for (const auto& operation : dropped) {
    operation->end(std::make_exception_ptr(Cancelled("the program has left the job")));
  }
  if (task_) {
    changed_->notify();
  }
}

std::shared_ptr<PendingOperation> CollectiveQueue::start(std::function<void()> body) {
  auto operation = std::make_shared<PendingOperation>(std::move(body));
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    if (ended_) {
      operation->end(ended_);
      return operation;
    }
    queued_.push_back(operation);
    is_first = !std::exchange(has_task_, true);
  }
  if (is_first) {
    task_ = world_.spawn("collectives", [this] { work(); });
  }
  changed_->notify();
  return operation;
}

void CollectiveQueue::run(const std::function<void()>& body) {
  if (idle()) {
    body();
  } else {
    start(body)->wait();
  }
}

bool CollectiveQueue::idle() const {
  const MutexLock lock(mutex_);
  return queued_.empty();
}

void CollectiveQueue::work() {
  try {
    work_until_stopped();
  } catch (const std::exception&) {
    end_all(std::current_exception());
  }
}

void CollectiveQueue::end_all(const std::exception_ptr& why) {
  std::deque<std::shared_ptr<PendingOperation>> dropped;
  {
    const MutexLock lock(mutex_);
    ended_ = why;
    std::swap(dropped, queued_);
  }
  for (const auto& operation : dropped) {
    operation->end(why);
  }
}

void CollectiveQueue::work_until_stopped() {
  while (const auto operation = next()) {
    operation->run();
    const MutexLock lock(mutex_);
    queued_.pop_front();
  }
}

std::shared_ptr<PendingOperation> CollectiveQueue::next() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (!queued_.empty()) {
        return queued_.front();
      }
      if (stopping_) {
        return nullptr;
      }
    }
    changed_->wait(no_deadline);
  }
}

}  // namespace syncopate
