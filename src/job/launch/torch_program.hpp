#pragma once

#include <cstdint>
#include <filesystem>

#include "base/log.hpp"

namespace syncopate {

/// Turns this process into `syncopate-torch` with the same arguments: the program beside this one,
/// or the one in ../libexec/syncopate/. Sets what the numeric libraries must find in the
/// environment first (`wanted_environment`), and says so when verbose.
///
/// Errors: Error, when there is no such program.
[[noreturn]] void become_torch_program(char** argv, std::uint32_t threads,
                                       log::Verbosity verbosity);

/// Where an installed program keeps its cluster files.
std::filesystem::path installed_clusters();

}  // namespace syncopate
