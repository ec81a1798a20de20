#pragma once

#include <cstdint>

#include "pacer/pace.hpp"

namespace syncopate {

/// What a worker was told last. Nothing at first.
struct PaceOrder {
  std::uint64_t round = 0;         ///< of which `meet_after` is said
  std::uint64_t meet_after = 0;    ///< local steps; 0: not said
  std::uint32_t step_samples = 0;  ///< of the next steps; 0: not said
};

/// A worker's line to the pacer. What is said goes one way: nobody waits for an answer.
class PacerClient {
 public:
  virtual ~PacerClient() = default;

  virtual void report(const StepReport& report) = 0;
  virtual PaceOrder order() const = 0;
};

}  // namespace syncopate
