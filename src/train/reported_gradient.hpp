#pragma once

#include <cstddef>
#include <map>

#include "scheme/replica.hpp"

namespace syncopate {

/// Passes on the values of a gradient that a program reports during the computation, and at the end
/// those that it has not reported: each value once.
///
/// Thread: one at a time.
class ReportedGradient final : public GradientSink {
 public:
  /// `to` gets the values of a gradient of that size, and outlives this.
  ReportedGradient(GradientSink& to, std::size_t size) : to_(to), size_(size) {}

  /// Errors: ConfigError if the gradient does not have these values, or if one was reported before;
  /// those of `to`.
  void ready(std::size_t begin, std::size_t end) override;

  /// The pass has ended: all other values are final, too.
  void report_rest();

 private:
  bool has_any_of(std::size_t begin, std::size_t end) const;

  GradientSink& to_;
  std::size_t size_;
  std::map<std::size_t, std::size_t> reported_;  ///< the end of each interval, by its begin
};

}  // namespace syncopate
