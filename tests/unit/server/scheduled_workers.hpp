#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace syncopate {

/// Returns the worker whose step ends first, or empty if no worker computes. Each worker has
/// `done_at`, the end of its step, empty while it computes nothing.
template <class Worker>
std::optional<std::size_t> next_to_finish(const std::vector<Worker>& workers) {
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const bool computes = workers[i].done_at.has_value();
    if (computes && (!next || workers[i].done_at < workers[*next].done_at)) next = i;
  }
  return next;
}

}  // namespace syncopate
