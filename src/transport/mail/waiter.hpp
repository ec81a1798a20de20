#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>

#include "transport/transport.hpp"

namespace syncopate::mail {

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

}  // namespace syncopate::mail
