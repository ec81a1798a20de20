#pragma once

#include <span>
#include <vector>

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

  /// True if this worker has the buffers after the last round.
  bool has_last() const { return has_last_; }
  /// Called when the worker got the result of a round that this object has not reduced.
  void forget() { has_last_ = false; }

  /// Called before the mean of `buffers` is computed, and after that. all_have_last: every worker
  /// `has_last`, and all contribute changes.
  void begin(std::span<float> buffers, bool all_have_last) const;
  void end(std::span<float> buffers, bool all_have_last);

 private:
  bool has_last_;
  std::vector<float> last_;  ///< equal on all workers that have it
};

/// Replaces a worker's buffers by the mean to which the worker contributed earlier, plus the change
/// of the buffers since then. Each result is clamped between the mean and the present value.
///
/// Without the clamp a variance could become negative: running statistics are means over the last
/// steps and forget old changes, but the sum counts a change in full. Buffers that have not changed
/// since they were contributed become the mean to the last bit. A value that is not finite stays
/// so.
///
/// Shapes: three vectors of one length.
void take_late_mean(std::span<float> buffers, std::span<const float> contributed,
                    std::span<const float> mean);

}  // namespace syncopate
