#pragma once

#include "base/time.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// One device, no communication: sequential SGD. Every step is a meeting with itself.
class Local : public Scheme {
 public:
  /// `done` rounds came before, in a run that is resumed.
  Local(const Clock& clock, Round done) : clock_(clock), round_(done) {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;

 private:
  const Clock& clock_;
  Round round_;
};

}  // namespace syncopate
