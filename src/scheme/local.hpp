#pragma once

#include "base/time.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// One device without communication: sequential SGD. Every step is a round of its own.
class Local : public Scheme {
 public:
  /// `done`: rounds before this run, where it is resumed.
  Local(const Clock& clock, Round done) : clock_(clock), round_(done) {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;

 private:
  const Clock& clock_;
  Round round_;
};

}  // namespace syncopate
