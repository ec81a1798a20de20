#include "transport/shm/arena.hpp"

#include <algorithm>

namespace syncopate::shm {

std::optional<std::size_t> Arena::take(std::size_t bytes) {
  const std::size_t needed = whole_pages(bytes);
  const auto part = std::find_if(free_.begin(), free_.end(),
                                 [&](const auto& free) { return free.second >= needed; });
  if (part == free_.end()) {
    return std::nullopt;
  }
  const auto [begin, room] = *part;
  free_.erase(part);
  if (room > needed) {
    free_.emplace(begin + needed, room - needed);
  }
  return begin;
}

void Arena::give_back(std::size_t begin, std::size_t bytes) {
  auto part = free_.emplace(begin, whole_pages(bytes)).first;
  if (const auto next = std::next(part);
      next != free_.end() && part->first + part->second == next->first) {
    part->second += next->second;
    free_.erase(next);
  }
  if (part != free_.begin()) {
    const auto previous = std::prev(part);
    if (previous->first + previous->second == part->first) {
      previous->second += part->second;
      free_.erase(part);
    }
  }
}

}  // namespace syncopate::shm
