#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/time.hpp"
#include "transport/transport.hpp"

namespace syncopate::mail {

/// A progress function: the waiting thread runs the engine until `done` returns true, until the
/// engine has run long enough, or until the deadline.
using ProgressFunction = std::function<void(const std::function<bool()>& done, TimePoint deadline)>;

/// A receive under way. The receiving thread owns it and, while its message arrives, the arrival.
/// Guarded by the mutex of its mailbox.
struct Waiter {
  enum class State {
    waiting,   ///< queued
    arriving,  ///< a message is being read into `buffer`
    done,      ///< the message is complete, or `error` is set
  };

  std::optional<NodeId> from;  ///< empty: from any node
  Tag tag;
  std::optional<std::span<std::byte>> buffer;  ///< the caller's; empty: fills `message`
  Message message{};
  State state = State::waiting;
  bool borrowed = false;  ///< the engine is writing into `buffer` at this moment
  std::exception_ptr error{};
  std::condition_variable changed{};

  bool could_take(NodeId sender, Tag under) const {
    return tag == under && (!from || *from == sender);
  }
  /// True once the caller owns the buffer again.
  bool is_released() const { return state == State::done && !borrowed; }
};

/// A message of which the header has arrived and the payload is arriving. Only the engine uses it.
struct Arrival {
  NodeId from;
  Tag tag;
  std::size_t bytes = 0;
  std::size_t have = 0;
  std::shared_ptr<Waiter> waiter{};  ///< its buffer receives the payload; null: `payload` does
  std::vector<std::byte> payload{};
  bool discarded = false;  ///< the payload is thrown away

  std::size_t missing() const { return bytes - have; }
};

/// Matches messages that arrive with receives.
///
/// Receives are served in the order in which they were begun, messages in the order in which they
/// arrived. If a receive with a buffer is waiting when the header arrives, the payload goes
/// straight into that buffer; otherwise it goes into memory of the mailbox, and to its receiver
/// when it is complete.
///
/// Threads:   any thread calls `try_receive`, `start_receive` and `cancel`; the engine calls the
///            other members, one at a time.
/// Invariant: the mailbox keeps no message that a waiting receive could take.
class Mailbox {
 public:
  /// The mailbox calls `resume`, from any thread, when the engine may again read from a peer that
  /// `may_read` held back. A thread that is about to wait calls `progress` if it is not empty.
  Mailbox(std::size_t unclaimed_limit, std::function<void(NodeId)> resume,
          ProgressFunction progress = {});

  std::unique_ptr<Transfer> start_receive(NodeId from, Tag tag, std::span<std::byte> into);
  std::optional<Message> try_receive(std::optional<NodeId> from, Tag tag, TimePoint deadline);

  /// Ends all receives, now and later, with `why`, and drops all messages, now and later.
  void cancel(const std::exception_ptr& why);

  /// Finds the buffer for a message whose header has arrived.
  Arrival begin(NodeId from, Tag tag, std::size_t bytes);
  /// Returns room for the rest of an arrival, or for at least `wanted` bytes of it, which the
  /// engine may write to until `give_back`. Empty if the payload is discarded.
  ///
  /// Memory: if no receive has a buffer for the message and `wanted` is given, the mailbox
  /// allocates memory as the bytes arrive: at most four times the bytes that have arrived.
  std::span<std::byte> borrow(Arrival& arrival,
                              std::size_t wanted = std::numeric_limits<std::size_t>::max());
  /// Ends `borrow`: `bytes` more have arrived. The last ones complete the receive.
  void give_back(Arrival& arrival, std::size_t bytes);

  /// True if a receive waits for the rest of an arrival. The engine may have borrowed its buffer.
  bool is_wanted(const Arrival& arrival) const;

  /// True if the engine may read more from `from`; if not, the mailbox calls `resume` once when
  /// that changes.
  bool may_read(NodeId from);

  /// Marks `from` as lost: nothing more will arrive from it, and an incomplete message is dropped.
  void lose(NodeId from, const std::exception_ptr& why);

  /// Frees the messages of a lost peer that no receive has taken.
  void forget(NodeId from);

 private:
  struct Peer {
    std::size_t unclaimed = 0;  ///< bytes of complete messages that no receive has taken
    bool paused = false;
    std::exception_ptr lost;
  };

  std::shared_ptr<Waiter> first_in_line(NodeId from, Tag tag) const REQUIRES(mutex_);
  std::optional<Message> take(std::optional<NodeId> from, Tag tag) REQUIRES(mutex_);
  std::exception_ptr reason_not_to_wait(std::optional<NodeId> from) REQUIRES(mutex_);
  void line_up(const std::shared_ptr<Waiter>& waiter) REQUIRES(mutex_);
  void finish(Waiter& waiter, const std::exception_ptr& error = nullptr) REQUIRES(mutex_);
  // Releases the mutex while it copies. The analysis does not follow a lock through a reference.
  void deliver(Message message, MutexLock& lock) REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS;
  void resume_if_paused(NodeId from) REQUIRES(mutex_);

  friend class Receiving;
  void await(Waiter& waiter, TimePoint deadline);
  // Releases the mutex while the thread makes progress; not analysed, for the reason at `deliver`.
  bool wait_for_release(Waiter& waiter, MutexLock& lock, TimePoint deadline)
      REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS;
  void withdraw(Waiter& waiter);

  const std::size_t unclaimed_limit_;
  const std::function<void(NodeId)> resume_;
  const ProgressFunction progress_;

  mutable Mutex mutex_;
  /// Receives that are not done, in the order in which they began.
  std::list<std::shared_ptr<Waiter>> waiters_ GUARDED_BY(mutex_);
  std::map<Tag, std::deque<Message>> messages_ GUARDED_BY(mutex_);
  std::map<NodeId, Peer> peers_ GUARDED_BY(mutex_);
  std::deque<std::exception_ptr> unreported_losses_ GUARDED_BY(mutex_);
  std::exception_ptr cancelled_ GUARDED_BY(mutex_);
};

}  // namespace syncopate::mail
