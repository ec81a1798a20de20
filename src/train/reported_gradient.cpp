#include "train/reported_gradient.hpp"

#include <fmt/format.h>

#include <iterator>

#include "base/errors.hpp"

namespace syncopate {

void ReportedGradient::ready(std::size_t begin, std::size_t end) {
  if (begin > end || end > size_) {
    throw ConfigError(
        fmt::format("a gradient of {} values was reported from value {} to {}", size_, begin, end));
  }
  if (begin == end) {
    return;
  }
  if (has_any_of(begin, end)) {
    throw ConfigError(fmt::format(
        "values {} to {} of a gradient were reported a second time before its step", begin, end));
  }
  reported_.emplace(begin, end);
  to_.ready(begin, end);
}

/// Reported intervals do not overlap each other, so only the two neighbours can overlap this one.
bool ReportedGradient::has_any_of(std::size_t begin, std::size_t end) const {
  const auto behind = reported_.lower_bound(begin);
  const bool next_has = behind != reported_.end() && behind->first < end;
  return next_has || (behind != reported_.begin() && std::prev(behind)->second > begin);
}

void ReportedGradient::report_rest() {
  std::size_t next = 0;
  for (const auto& [begin, end] : reported_) {
    if (next < begin) {
      to_.ready(next, begin);
    }
    next = end;
  }
  if (next < size_) {
    to_.ready(next, size_);
  }
  reported_ = {{0, size_}};
}

}  // namespace syncopate
