#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "transport/mpi/mpi_session.hpp"

namespace syncopate::mpi {

/// The file of the module for one library. These functions are separate from the engine, so that a
/// program that only looks for the file links nothing else.
struct ModuleFile {
  const char* name;
  const char* library;  ///< "Open MPI"
  const char* package;  ///< the Debian package with which the module is built
};

ModuleFile module_file(Library library);

/// Finds the file in the folder `chosen`; if that is empty, beside the program or in the program's
/// installation.
std::optional<std::filesystem::path> find(const ModuleFile& module, const std::string& chosen);

/// As `find`, but a missing file is an error. Errors: ConfigError, which names the package to
/// install.
std::filesystem::path expect(const ModuleFile& module, const std::string& chosen);

}  // namespace syncopate::mpi
