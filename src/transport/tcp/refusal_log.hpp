#pragma once

#include <cstdint>
#include <string>

#include "base/time.hpp"

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

}  // namespace syncopate::tcp
