#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace syncopate::shm {

/// Allocates parts of a range of memory: first fit, in whole pages. It holds no memory itself.
///
/// Invariant: free parts that touch each other are one part.
class Arena {
 public:
  static constexpr std::size_t page = 4096;

  explicit Arena(std::size_t bytes) { free_.emplace(0, bytes / page * page); }

  /// The offset of a free part for `bytes`, at least one page; empty where there is none.
  std::optional<std::size_t> take(std::size_t bytes);
  void give_back(std::size_t begin, std::size_t bytes);

  static std::size_t whole_pages(std::size_t bytes) {
    return bytes == 0 ? page : (bytes + page - 1) / page * page;
  }

 private:
  std::map<std::size_t, std::size_t> free_;  ///< bytes, by offset
};

}  // namespace syncopate::shm
