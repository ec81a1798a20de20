#include "kernels/thread_pool.hpp"

#include <pthread.h>

#include <algorithm>

#include "base/cores.hpp"

namespace syncopate {

std::uint32_t default_thread_count() {
  constexpr std::uint32_t most = 4;
  return std::clamp(available_cores(), 1U, most);
}

ThreadPool::ThreadPool(std::uint32_t threads) {
  while (threads_.size() + 1 < threads) {
    threads_.emplace_back([this] { work(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::run(std::size_t parts, const Visit& visit) {
  {
    const MutexLock lock(mutex_);
    visit_ = &visit;
    parts_ = parts;
    next_ = 0;
    busy_ = threads_.size();
    ++loops_;
  }
  changed_.notify_all();
  take_parts();
  MutexLock lock(mutex_);
  while (busy_ != 0) {
    changed_.wait(lock.native());
  }
}

void ThreadPool::work() {
  pthread_setname_np(pthread_self(), "pool");
  std::uint64_t done = 0;
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && loops_ == done) {
      changed_.wait(lock.native());
    }
    if (stopping_) {
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
