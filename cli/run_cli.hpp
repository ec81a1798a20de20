#pragma once

#include "cli/handlers.hpp"

namespace syncopate::cli {

/// Parses the command line, does what it says, and gives the exit status (`cli/exit_status.hpp`).
/// Whatever was typed wrong becomes one line on standard error. Never throws.
int run_cli(int argc, char** argv, const Handlers& handlers);

}  // namespace syncopate::cli
