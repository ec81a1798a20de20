#include "config/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

using Name = std::string_view;

/// Levenshtein's distance: insertions, deletions and replacements that turn one word into the other.
std::size_t edit_distance(Name from, Name to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// Whether one exchange of neighbouring letters turns one word into the other: "trian", "train".
bool differ_by_a_swap(Name word, Name candidate) {
  if (word.size() != candidate.size()) {
    return false;
  }
  const auto [mine, theirs] = std::mismatch(word.begin(), word.end(), candidate.begin());
  return word.end() - mine >= 2 && mine[0] == theirs[1] && mine[1] == theirs[0] &&
         std::equal(mine + 2, word.end(), theirs + 2);
}

/// How unlike two words are; a swap, or a word that begins the other, is as near as a single slip.
std::size_t unlikeness(Name word, Name candidate) {
  const bool begins = !word.empty() && (candidate.starts_with(word) || word.starts_with(candidate));
  return begins || differ_by_a_swap(word, candidate) ? 1 : edit_distance(word, candidate);
}

}  // namespace

Name nearest_name(Name word, std::span<const Name> candidates) {
  std::size_t nearest_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  Name nearest;
  for (const Name candidate : candidates) {
    const std::size_t distance = unlikeness(word, candidate);
    if (distance < nearest_distance) {
      nearest_distance = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string suggestion(Name word, std::span<const Name> candidates) {
  const Name nearest = nearest_name(word, candidates);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace syncopate
