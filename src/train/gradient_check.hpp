#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.hpp"
#include "spec/config.hpp"

namespace syncopate {

/// Decides about a worker's gradients that are not finite.
class GradientCheck {
 public:
  GradientCheck(Rank worker, NanPolicy policy) : worker_(worker), policy_(policy) {}

  /// Returns false if the gradient is not finite and is to be skipped. `step` counts from 1; `loss`
  /// is the mean loss of its batch, if it is known. Errors: NotFinite if such a gradient is to end
  /// the job, or if too many follow each other.
  bool admit(bool finite, std::uint64_t step, std::optional<double> loss);

 private:
  Rank worker_;
  NanPolicy policy_;
  std::uint64_t skipped_in_a_row_ = 0;
};

}  // namespace syncopate
