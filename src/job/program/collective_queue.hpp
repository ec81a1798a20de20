#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "base/mutex.hpp"
#include "job/program/pending.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// An operation that another thread carries out.
class PendingOperation final : public Pending {
 public:
  explicit PendingOperation(std::function<void()> body) : body_(std::move(body)) {}

  /// Carries it out, once, on the calling thread.
  void run();
  /// Ends it, with an error or without one; `run` does so itself.
  void end(std::exception_ptr failure);

  bool done() override;
  void wait() override;
  bool wait_for(Duration limit) override;

 private:
  std::function<void()> body_;
  mutable Mutex mutex_;
  std::condition_variable ended_;
  bool done_ GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
};

/// Carries out the operations of one node in the order in which they were asked for: those that
/// their caller does not wait for in a task of its own, which begins with the first of them. Once
/// the node has been cancelled, all of them end with its error.
///
/// Thread: `start` any; `run` one, while no other starts anything.
class CollectiveQueue {
 public:
  /// The world outlives this.
  explicit CollectiveQueue(World& world) : world_(world), changed_(world.make_event()) {}
  /// Operations that have not begun end with Cancelled. Waits for the one under way, which the
  /// transport's end has ended.
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;

  std::shared_ptr<PendingOperation> start(std::function<void()> body);
  /// Starts and waits; on the calling thread where nothing is under way. Errors: those of `body`.
  void run(const std::function<void()>& body);

 private:
  bool idle() const;
  void work();
  void work_until_stopped();
  /// The operation to carry out next; null: none any more. Errors: the error that ended the node.
  std::shared_ptr<PendingOperation> next();
  /// Ends what is queued, and whatever comes.
  void end_all(const std::exception_ptr& why);

  World& world_;
  std::shared_ptr<Event> changed_;
  mutable Mutex mutex_;
  std::deque<std::shared_ptr<PendingOperation>> queued_ GUARDED_BY(mutex_);  ///< first: under way
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool has_task_ GUARDED_BY(mutex_) = false;
  std::exception_ptr ended_ GUARDED_BY(mutex_);  ///< the error that has ended the task
  std::unique_ptr<Task> task_;  ///< last: it uses the members above; who sets `has_task_` makes it
};

}  // namespace syncopate
