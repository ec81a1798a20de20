#include "transport/mpi/module_file.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/errors.hpp"

namespace syncopate::mpi {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders(const std::string& chosen) {
  if (!chosen.empty()) {
    return {chosen};
  }
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  return {here, here.parent_path() / "libexec/syncopate"};
}

}  // namespace

ModuleFile module_file(Library library) {
  return library == Library::open_mpi
             ? ModuleFile{"syncopate-mpi-openmpi.so", "Open MPI", "libopenmpi-dev"}
             : ModuleFile{"syncopate-mpi-mpich.so", "MPICH", "libmpich-dev"};
}

std::optional<fs::path> find(const ModuleFile& module, const std::string& chosen) {
  for (const fs::path& folder : folders(chosen)) {
    std::error_code unknown;
    if (fs::exists(folder / module.name, unknown)) {
      return folder / module.name;
    }
  }
  return std::nullopt;
}

fs::path expect(const ModuleFile& module, const std::string& chosen) {
  const auto found = find(module, chosen);
  if (!found) {
    throw ConfigError(
        fmt::format("expected the module for {}, {}, in {}, found none: install {} (Debian's name) "
                    "and build Syncopate again",
                    module.library, module.name, folders(chosen).back().string(), module.package));
  }
  return *found;
}

bool is_built(Library library, const std::string& modules) {
  return find(module_file(library), modules).has_value();
}

}  // namespace syncopate::mpi
