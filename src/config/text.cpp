#include "config/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace syncopate {
namespace {

using Name = std::string_view;

/// Insertions, deletions and replacements that turn one word into the other (Levenshtein 1966).
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

/// True if a swap of two neighbouring letters turns one word into the other: "trian", "train".
bool differ_by_a_swap(Name word, Name candidate) {
  if (word.size() != candidate.size()) {
    return false;
  }
  const auto [mine, theirs] = std::mismatch(word.begin(), word.end(), candidate.begin());
  return word.end() - mine >= 2 && mine[0] == theirs[1] && mine[1] == theirs[0] &&
         std::equal(mine + 2, word.end(), theirs + 2);
}

/// The distance of two words. A swap, or a word that begins the other, counts as one edit.
std::size_t distance_between(Name word, Name candidate) {
  const bool begins = !word.empty() && (candidate.starts_with(word) || word.starts_with(candidate));
  return begins || differ_by_a_swap(word, candidate) ? 1 : edit_distance(word, candidate);
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  const auto last = text.find_last_not_of(' ');
  return first == std::string_view::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string_view> entries_of(std::string_view list) {
  std::vector<std::string_view> entries;
  for (std::size_t begin = 0;;) {
    const std::size_t end = list.find(',', begin);
    entries.push_back(list.substr(begin, end - begin));
    if (end == std::string_view::npos) {
      return entries;
    }
    begin = end + 1;
  }
}

std::string alternatives(std::span<const Name> names) {
  const auto first = names.first(names.size() - 1);
  return first.empty() ? std::string(names.back())
                       : fmt::format("{} or {}", fmt::join(first, ", "), names.back());
}

Name nearest_name(Name word, std::span<const Name> candidates) {
  std::size_t nearest_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  Name nearest;
  for (const Name candidate : candidates) {
    const std::size_t distance = distance_between(word, candidate);
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
