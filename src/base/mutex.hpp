#pragma once

#include <condition_variable>
#include <mutex>

// Clang's thread-safety attributes, under names of the project; other compilers ignore them. A test
// compiles every file that uses them with -Wthread-safety: an access to a member without its mutex
// is an error.
#if defined(__clang__)
#define SYNC_ATTRIBUTE(x) __attribute__((x))
#else
#define SYNC_ATTRIBUTE(x)
#endif

/// On a member: only a thread that holds the mutex touches it.
#define GUARDED_BY(mutex) SYNC_ATTRIBUTE(guarded_by(mutex))
/// On a function: its caller holds the mutex.
#define REQUIRES(mutex) SYNC_ATTRIBUTE(requires_capability(mutex))
/// On a function: its caller does not hold the mutex, which the function takes itself.
#define EXCLUDES(mutex) SYNC_ATTRIBUTE(locks_excluded(mutex))
/// On a function: the analysis skips its body. The reason stands beside it.
#define NO_THREAD_SAFETY_ANALYSIS SYNC_ATTRIBUTE(no_thread_safety_analysis)

namespace syncopate {

/// A std::mutex that clang's analysis knows.
class SYNC_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() SYNC_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() SYNC_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  bool try_lock() SYNC_ATTRIBUTE(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a mutex until the end of its scope; `unlock` and `lock` in between are allowed.
class SYNC_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SYNC_ATTRIBUTE(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() SYNC_ATTRIBUTE(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() SYNC_ATTRIBUTE(acquire_capability()) { lock_.lock(); }
  void unlock() SYNC_ATTRIBUTE(release_capability()) { lock_.unlock(); }

  /// For a condition variable, which releases the mutex only while the thread waits.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace syncopate
