#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.hpp"

namespace syncopate {

/// The number of cores of this machine, up to four: loops over long vectors are bound by memory,
/// which a few cores keep busy.
std::uint32_t default_thread_count();

/// Threads that run the parts of a long loop together with the calling thread, which waits for the
/// last part. Parts compute only: they do not block and do not throw. No part touches memory that
/// another writes, so the result is that of a plain loop, bit for bit.
///
/// Thread: one.
class ThreadPool {
 public:
  /// `threads`: the calling thread included; with 1 there are no others.
  explicit ThreadPool(std::uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  using Visit = std::function<void(std::size_t part)>;

  /// Calls `visit` once for each of the parts 0 to `parts` − 1, and returns when all have ended.
  void run(std::size_t parts, const Visit& visit);

 private:
  void work();
  void take_parts();

  Mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t loops_ GUARDED_BY(mutex_) = 0;  ///< started so far
  std::size_t busy_ GUARDED_BY(mutex_) = 0;     ///< threads that have not finished the current loop
  bool stopping_ GUARDED_BY(mutex_) = false;

  // Of the current loop. No thread changes the first two while threads are busy.
  const Visit* visit_ = nullptr;
  std::size_t parts_ = 0;
  std::atomic<std::size_t> next_ = 0;

  std::vector<std::thread> threads_;  ///< last: they use everything above
};

}  // namespace syncopate
