#pragma once

#include <cstddef>
#include <deque>

#include "transport/tcp/tcp_handshake.hpp"

namespace syncopate::tcp {

/// The accepted streams whose nodes have not shown the job's token yet. Any process may open such a
/// stream, so their number is limited, and the oldest makes room for a new one: a node of the job
/// introduces itself at once. Only the engine uses it.
class Unauthenticated {
 public:
  static constexpr std::size_t most = 64;

  void add(PendingHandshake handshake);
  /// Closes the oldest ones until at most `left` are left. Returns the number of closed ones.
  std::size_t shrink_to(std::size_t left);
  /// Returns false if there is none.
  bool close_oldest();

 private:
  void remove_complete();

  std::deque<PendingHandshake> pending_;  ///< the oldest first
};

}  // namespace syncopate::tcp
