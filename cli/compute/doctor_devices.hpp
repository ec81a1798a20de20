#pragma once

#include "cli/doctor/finding.hpp"

namespace syncopate::cli {

/// libtorch, BLAS, drivers, and how fast each device trains: LeNet-5, mini-batches of 64, one thread.
Findings examine_devices();

}  // namespace syncopate::cli
