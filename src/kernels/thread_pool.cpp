#include "kernels/thread_pool.hpp"

#include <pthread.h>

#include <algorithm>

namespace syncopate {

std::uint32_t hands_at_hand() {
  constexpr std::uint32_t enough = 4;
  return std::clamp(std::thread::hardware_concurrency(), 1U, enough);
}

ThreadPool::ThreadPool(std::uint32_t hands) {
  while (threads_.size() + 1 < hands) {
    threads_.emplace_back([this] { help(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::run(std::size_t parts, const Visit& visit) {
  {
    const std::lock_guard lock(mutex_);
    visit_ = &visit;
    parts_ = parts;
    next_ = 0;
    busy_ = threads_.size();
    ++loops_;
  }
  changed_.notify_all();
  take_parts();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_ == 0; });
}

void ThreadPool::help() {
  pthread_setname_np(pthread_self(), "pool");
  std::uint64_t done = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return over_ || loops_ != done; });
    if (over_) {
      return;
    }
    done = loops_;
    lock.unlock();
    take_parts();
    lock.lock();
    if (--busy_ == 0) {
      changed_.notify_all();
    }
  }
}

void ThreadPool::take_parts() {
  for (std::size_t part = next_++; part < parts_; part = next_++) {
    (*visit_)(part);
  }
}

}  // namespace syncopate
