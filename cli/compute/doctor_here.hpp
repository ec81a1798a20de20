#pragma once

#include "cli/doctor/command.hpp"

namespace syncopate::cli {

/// `syncopate doctor`: examines this host, or, where a launcher has started it several times, every rank's host and the
/// links between them, and prints what it found; with a coordinator's address, also whether that answers. Gives the exit status: failure, where there is a
/// problem. Errors: none of what it examines.
int doctor_here(const DoctorCommand& command);

}  // namespace syncopate::cli
