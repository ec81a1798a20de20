#pragma once

#include "telemetry/histogram.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// A histogram as it travels, and back.
wire::Counts to_wire(const Histogram& histogram);
/// Errors: ProtocolError, for counts that no histogram has.
Histogram from_wire(const wire::Counts& counts);

}  // namespace syncopate
