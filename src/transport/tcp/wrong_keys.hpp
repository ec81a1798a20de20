#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace syncopate::tcp {

/// Slows down a process that tries keys: the refusal of a wrong key waits, twice as long for each
/// further one of the same address. Nobody else waits.
class WrongKeys {
 public:
  using Delay = std::chrono::milliseconds;

  static constexpr Delay longest{4000};
  /// Addresses beyond these share one count.
  static constexpr std::size_t most_addresses = 1024;

  explicit WrongKeys(Delay first) : first_(first) {}

  /// Counts a wrong key of `address`. Returns how long its refusal waits.
  Delay count(const std::string& address);

 private:
  const Delay first_;
  std::map<std::string, std::uint32_t> counts_;
};

}  // namespace syncopate::tcp
