#pragma once

#include <span>
#include <vector>

#include "collective/allreduce.hpp"

namespace syncopate {

/// The weighted mean of the workers' buffers, round after round.
///
/// What is reduced is their change since the last round. So a value that nobody changes stays the
/// same to the last bit: the sum of the factors, which are float32, is not exactly 1, and over many
/// rounds a mean of equal values would drift by that.
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

  /// True where this worker has the buffers after the last round.
  bool has_last() const { return has_last_; }
  /// This worker has another result than this object has seen.
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
