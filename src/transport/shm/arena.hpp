#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace syncopate::shm {

/// Which parts of a stretch of memory are taken: first fit, in whole pages. Knows no memory itself.
///
/// Invariant: parts that are free and touch each other are one.
class Arena {
 public:
  static constexpr std::size_t page = 4096;

  explicit Arena(std::size_t bytes) { free_.emplace(0, bytes / page * page); }

  /// Where there is room for `bytes`, at least one page; empty where there is none.
  std::optional<std::size_t> take(std::size_t bytes);
  void give_back(std::size_t begin, std::size_t bytes);

  static std::size_t whole_pages(std::size_t bytes) {
    return bytes == 0 ? page : (bytes + page - 1) / page * page;
  }

 private:
  std::map<std::size_t, std::size_t> free_;  ///< bytes, by where they begin
};

}  // namespace syncopate::shm
