#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace syncopate {

/// How the workers of a job divide the steps of each epoch, which are the same global batches
/// whatever the speeds: the first worker that comes to a run of steps decides by its estimate of
/// the speeds, and the others get the same parts, however far they read ahead.
///
/// Invariant: every worker gets the same parts of a step, while not more than `kept` runs lie
///            between the first and the last worker.
/// Pure.
class StepBook {
 public:
  static constexpr std::uint64_t run = 4;  ///< steps with the same parts
  static constexpr std::size_t kept = 4096;

  explicit StepBook(std::uint32_t workers) : workers_(workers) {}

  /// The weights of the workers' parts, by rank, in the run that holds `step`. Errors:
  /// ProtocolError for weights of another number of workers, or one that is 0.
  const std::vector<std::uint32_t>& parts(Epoch epoch, std::uint64_t step,
                                          const std::vector<std::uint32_t>& proposed);

 private:
  using Run = std::pair<Epoch, std::uint64_t>;

  std::uint32_t workers_;
  std::map<Run, std::vector<std::uint32_t>> parts_;
  std::deque<Run> order_;  ///< in which they were decided
};

}  // namespace syncopate
