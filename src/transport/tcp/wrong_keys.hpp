#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace syncopate::tcp {

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
