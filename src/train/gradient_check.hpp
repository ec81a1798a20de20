#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "scheme/replica.hpp"
#include "spec/config.hpp"

namespace syncopate {

/// Decides about a worker's gradients that are not finite. After a pass that is skipped the buffers
/// are as before it: statistics over its batch, such as BatchNorm's, may not be finite either.
class GradientCheck {
 public:
  /// `replica` outlives this.
  GradientCheck(Replica& replica, Rank worker, NanPolicy policy)
      : replica_(replica), worker_(worker), policy_(policy) {}

  /// Keeps the buffers, if passes are skipped. Called whenever the next pass begins with them.
  void keep_buffers();
  /// Called after the pass. Returns false if the gradient is not finite and is to be skipped.
  /// `step` counts from 1; `loss` is the mean loss of its batch, if it is known. Errors: NotFinite
  /// if such a gradient is to end the job, or if too many follow each other.
  bool admit(bool finite, std::uint64_t step, std::optional<double> loss);

 private:
  Replica& replica_;
  Rank worker_;
  NanPolicy policy_;
  std::vector<float> buffers_{};  ///< before the pass
  std::uint64_t skipped_in_a_row_ = 0;
};

}  // namespace syncopate
