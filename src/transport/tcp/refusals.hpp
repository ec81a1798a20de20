#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "base/time.hpp"
#include "transport/tcp/tcp_handshake.hpp"

namespace syncopate::tcp {

/// Logs the connections that a node turns away: the first 20 one by one, later ones together once a
/// minute, so that a process that connects again and again does not fill the disk.
///
/// Thread: one at a time.
class RefusalLog {
 public:
  void add(const std::string& remote, const std::string& reason, TimePoint now);

 private:
  static constexpr std::uint64_t lines = 20;
  static constexpr Duration period = std::chrono::minutes(1);

  std::uint64_t count_ = 0;
  std::uint64_t logged_ = 0;  ///< those of `count_` that a line has reported
  TimePoint last_line_{};
};

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

/// Slows down a process that guesses keys: the refusal of a wrong key is delayed, and each further
/// wrong key of the same address doubles the delay. No other process is delayed.
class WrongKeys {
 public:
  using Delay = std::chrono::milliseconds;

  static constexpr Delay longest{4000};
  /// Addresses beyond these share one count.
  static constexpr std::size_t most_addresses = 1024;

  explicit WrongKeys(Delay first) : first_(first) {}

  /// Counts a wrong key of `address`. Returns the delay of its refusal.
  Delay count(const std::string& address);

 private:
  const Delay first_;
  std::map<std::string, std::uint32_t> counts_;
};

}  // namespace syncopate::tcp
