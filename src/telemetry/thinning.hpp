#pragma once

#include <cstdint>

namespace syncopate {

/// Keeps a log of a job of any length small: keeps every entry at first, and a fourth as many each
/// time `budget` lines have been written. A log of n entries has less than budget · (1 + log4(n))
/// lines. Pure.
class Thinning {
 public:
  explicit Thinning(std::uint64_t budget) : budget_(budget) {}

  /// True if the next entry is to be written.
  bool keeps_next() { return seen_++ % interval_ == 0; }
  /// The entry took `lines` lines.
  void wrote(std::uint64_t lines) {
    written_ += lines;
    if (written_ >= budget_) {
      written_ = 0;
      seen_ = 1;  // the one just written
      interval_ *= 4;
    }
  }

 private:
  std::uint64_t budget_;
  std::uint64_t interval_ = 1;
  std::uint64_t seen_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace syncopate
