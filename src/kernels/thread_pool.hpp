#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace syncopate {

/// As many hands as this machine has cores, up to four: loops over long vectors are bound by memory, which
/// a few cores keep busy.
std::uint32_t hands_at_hand();

/// Threads that do the parts of a long loop beside their owner, who waits for the last of them: for
/// computation alone, which blocks in nothing and throws nothing. Parts do not touch what others write,
/// so the result is that of a plain loop, bit for bit.
///
/// Thread: one.
class ThreadPool {
 public:
  /// `hands`: the owner's among them; with one, loops are plain.
  explicit ThreadPool(std::uint32_t hands);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  using Visit = std::function<void(std::size_t part)>;

  /// Calls `visit` once for each of the parts 0 to `parts` − 1, and returns when all are done.
  void run(std::size_t parts, const Visit& visit);

 private:
  void help();
  void take_parts();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t loops_ = 0;  ///< begun so far
  std::size_t busy_ = 0;     ///< threads that are not done with the one under way
  bool over_ = false;

  const Visit* visit_ = nullptr;  ///< of the loop under way, as are the next two
  std::size_t parts_ = 0;
  std::atomic<std::size_t> next_ = 0;

  std::vector<std::thread> threads_;  ///< last: they use everything above
};

}  // namespace syncopate
