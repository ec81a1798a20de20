#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "transport/transport.hpp"

namespace syncopate::mail {

/// Lets the thread that waits do the engine's work, until `done` says so or for as long as the engine likes, at most until
/// the deadline.
using ProgressFunction = std::function<void(const std::function<bool()>& done, TimePoint deadline)>;

/// A receive under way. Owned by the thread that receives and, while its message is arriving, by
/// the arrival. Guarded by the mutex of its mailbox.
struct Waiter {
  enum class State {
    waiting,   ///< in line
    arriving,  ///< a message is being read into `buffer`
    done,      ///< `error`, or the message is there
  };

  std::optional<NodeId> from;  ///< empty: from anyone
  Tag tag;
  std::optional<std::span<std::byte>> buffer;  ///< lent by the caller; empty: fills `message`
  Message message{};
  State state = State::waiting;
  bool borrowed = false;  ///< the engine is writing into `buffer` at this moment
  std::exception_ptr error{};
  std::condition_variable changed{};

  bool could_take(NodeId sender, Tag under) const {
    return tag == under && (!from || *from == sender);
  }
  /// Whether the buffer is the caller's again.
  bool is_released() const { return state == State::done && !borrowed; }
};

/// A message of which the header has come and the payload is coming. Used by the engine alone.
struct Arrival {
  NodeId from;
  Tag tag;
  std::size_t bytes = 0;
  std::size_t have = 0;
  std::shared_ptr<Waiter> waiter{};  ///< whose buffer the payload goes to; none: to `payload`
  std::vector<std::byte> payload{};
  bool discarded = false;  ///< the payload is thrown away

  std::size_t missing() const { return bytes - have; }
};

/// Where what arrives meets those who wait for it.
///
/// Receives are served in the order in which they were begun, messages in the order in which they
/// arrived. A message goes straight into a lent buffer if that receive was first in line when the
/// header came; otherwise into memory, and to its receiver when it is complete.
///
/// Threads: `receive`, `start_receive` and `cancel` from any; the rest from the engine's, one at a time.
/// Invariant: no message is kept while a receive waits that it could serve.
class Mailbox {
 public:
  /// `resume` is called, from any thread, when a peer that `may_read` held back may go on; `help`, where the engine
  /// can be helped, by each thread that is about to wait.
  Mailbox(std::size_t unclaimed_limit, std::function<void(NodeId)> resume,
          ProgressFunction progress = {});

  std::unique_ptr<Transfer> start_receive(NodeId from, Tag tag, std::span<std::byte> into);
  Message receive(std::optional<NodeId> from, Tag tag, TimePoint deadline);

  /// Ends all receives, now and later, with `why`, and drops what had arrived and what will arrive.
  void cancel(const std::exception_ptr& why);

  /// Finds the place for a message whose header has come.
  Arrival begin(NodeId from, Tag tag, std::size_t bytes);
  /// The rest of an arrival's place, which the engine may write to until `give_back`. Empty where
  /// the payload is to be thrown away.
  std::span<std::byte> borrow(Arrival& arrival);
  /// Ends `borrow`: `bytes` more have come. The last of them hands the message over.
  void give_back(Arrival& arrival, std::size_t bytes);

  /// Whether anybody wants the rest of an arrival, whose place may be lent meanwhile.
  bool is_wanted(const Arrival& arrival) const;

  /// Whether more should be read from `from`; if not, `resume` is called once when that changes.
  bool may_read(NodeId from);

  /// No more will come from `from`; a message that had not come whole is forgotten.
  void lose(NodeId from, const std::exception_ptr& why);

 private:
  struct Peer {
    std::size_t unclaimed = 0;  ///< bytes of complete messages that nobody has taken
    bool paused = false;
    std::exception_ptr lost;
  };

  std::shared_ptr<Waiter> first_in_line(NodeId from, Tag tag) const;
  std::optional<Message> take(std::optional<NodeId> from, Tag tag);
  std::exception_ptr reason_not_to_wait(std::optional<NodeId> from);
  void line_up(const std::shared_ptr<Waiter>& waiter);
  void finish(Waiter& waiter, const std::exception_ptr& error = nullptr);
  void deliver(Message message, std::unique_lock<std::mutex>& lock);
  void resume_if_paused(NodeId from);

  friend class Receiving;
  void await(Waiter& waiter, TimePoint deadline);
  bool wait_for_release(Waiter& waiter, std::unique_lock<std::mutex>& lock, TimePoint deadline);
  void withdraw(Waiter& waiter);

  const std::size_t unclaimed_limit_;
  const std::function<void(NodeId)> resume_;
  const ProgressFunction progress_;

  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Waiter>> waiters_;  ///< not done, in the order in which they began
  std::map<Tag, std::deque<Message>> messages_;
  std::map<NodeId, Peer> peers_;
  std::deque<std::exception_ptr> unreported_losses_;
  std::exception_ptr cancelled_;
};

}  // namespace syncopate::mail
