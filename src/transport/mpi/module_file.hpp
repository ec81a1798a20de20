#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "transport/mpi/mpi_session.hpp"

namespace syncopate::mpi {

/// The file of the module for one library. These functions are apart from the engine, so that a
/// program that only asks for the file links nothing else.
struct ModuleFile {
  const char* name;
  const char* library;  ///< "Open MPI"
  const char* package;  ///< of Debian, that it is built with
};

ModuleFile module_file(Library library);

/// Finds the file in the folder `chosen`; where that is empty, beside the program or where the
/// program was installed.
std::optional<std::filesystem::path> find(const ModuleFile& module, const std::string& chosen);

/// The same. Errors: ConfigError, which names the package to install.
std::filesystem::path expect(const ModuleFile& module, const std::string& chosen);

}  // namespace syncopate::mpi
