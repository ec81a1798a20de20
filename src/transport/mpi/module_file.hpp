#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "transport/mpi/mpi_session.hpp"

namespace syncopate::mpi {

/// The file with the calls of one library, apart from all that calls them: who only asks whether it is there loads
/// nothing else.
struct ModuleFile {
  const char* name;
  const char* library;  ///< "Open MPI"
  const char* package;  ///< of Debian, that it is built with
};

ModuleFile module_file(Library library);

/// Where it is: in the folder that is `chosen`, or, where none is, beside the program or where it was installed.
std::optional<std::filesystem::path> find(const ModuleFile& module, const std::string& chosen);

/// The same. Errors: ConfigError, which says what to install.
std::filesystem::path expect(const ModuleFile& module, const std::string& chosen);

}  // namespace syncopate::mpi
