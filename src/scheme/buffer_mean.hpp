#pragma once

#include <span>
#include <vector>

#include "collective/allreduce.hpp"

namespace syncopate {

/// The weighted mean of the workers' buffers, round after round.
///
/// Workers reduce the change of their buffers since the last round, not the buffers themselves. So
/// a value that no worker changes stays the same to the last bit. A mean of the values would drift
/// over many rounds, because the sum of the float32 weights is not exactly 1.
///
/// Thread: one.
class BufferMean {
 public:
  /// `initial`: the buffers with which all workers begin, in a new job or in a resumed one; empty
  /// where they are not known.
  explicit BufferMean(std::span<const float> initial)
      : has_last_(!initial.empty()), last_(initial.begin(), initial.end()) {}

  struct Weight {
    double own;
    double total;  ///< of all workers, above 0
  };

  /// True if this worker has the buffers after the last round.
  bool has_last() const { return has_last_; }
  /// Called when the worker got the result of a round that this object has not reduced.
  void forget() { has_last_ = false; }

  /// all_have_last: every worker `has_last`. Errors: those of the allreduce; `buffers` are then
  /// unspecified.
  void reduce(Allreduce& allreduce, std::span<float> buffers, const Weight& weight,
              bool all_have_last);

 private:
  bool has_last_;
  std::vector<float> last_;  ///< equal on all workers that have it
};

}  // namespace syncopate
