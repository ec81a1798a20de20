#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/errors.hpp"
#include "transport/mpi/session.hpp"

namespace syncopate::mpi {
namespace {

namespace fs = std::filesystem;

struct Module {
  const char* file;
  const char* library;
  const char* package;
};

Module module_of(Library library) {
  return library == Library::open_mpi
             ? Module{"syncopate-mpi-openmpi.so", "Open MPI", "libopenmpi-dev"}
             : Module{"syncopate-mpi-mpich.so", "MPICH", "libmpich-dev"};
}

std::vector<fs::path> folders(const std::string& chosen) {
  if (!chosen.empty()) {
    return {chosen};
  }
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  return {here, here.parent_path() / "libexec/syncopate"};
}

std::optional<fs::path> find(const Module& module, const std::string& chosen) {
  for (const fs::path& folder : folders(chosen)) {
    if (fs::exists(folder / module.file)) {
      return folder / module.file;
    }
  }
  return std::nullopt;
}

fs::path expect(const Module& module, const std::string& chosen) {
  const auto found = find(module, chosen);
  if (!found) {
    throw ConfigError(
        fmt::format("expected the module for {}, {}, in {}, found none: install {} (Debian's name) "
                    "and build Syncopate anew",
                    module.library, module.file, folders(chosen).back().string(), module.package));
  }
  return *found;
}

/// Its symbols are everybody's: MPI loads parts of its own, which look for them there. It is never unloaded, since what
/// MPI leaves behind at the end of a process lies in it.
MakeCalls load(const Module& module, const std::string& chosen) {
  const fs::path file = expect(module, chosen);
  void* const loaded = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  void* const make = loaded != nullptr ? ::dlsym(loaded, make_calls_name) : nullptr;
  if (make == nullptr) {
    throw ConfigError(
        fmt::format("{} cannot be loaded: {}; is {} installed as it was when Syncopate was built?",
                    file.string(), ::dlerror(), module.library));
  }
  return reinterpret_cast<MakeCalls>(make);
}

}  // namespace

bool is_built(Library library, const std::string& modules) {
  return find(module_of(library), modules).has_value();
}

std::unique_ptr<Endpoint> start(Library library, const EndpointOptions& options) {
  const Module module = module_of(library);
  const MakeCalls make = load(module, options.modules);
  try {
    return std::make_unique<Session>([make] { return std::unique_ptr<Calls>(make()); }, options);
  } catch (const InternalError& error) {
    throw ConfigError(fmt::format("{} cannot be started: {}", module.library, error.what()));
  }
}

}  // namespace syncopate::mpi
