#include <dlfcn.h>
#include <fmt/format.h>

#include "base/errors.hpp"
#include "transport/mpi/loaded_session.hpp"
#include "transport/mpi/module_file.hpp"

namespace syncopate::mpi {
namespace {

/// Its symbols are everybody's: MPI loads parts of its own, which look for them there. It is never unloaded, since what
/// MPI leaves behind at the end of a process lies in it.
MakeCalls load(const ModuleFile& module, const std::string& chosen) {
  const std::filesystem::path file = expect(module, chosen);
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

std::unique_ptr<Session> start(Library library, const SessionOptions& options) {
  const ModuleFile module = module_file(library);
  const MakeCalls make = load(module, options.modules);
  try {
    return std::make_unique<LoadedSession>([make] { return std::unique_ptr<Calls>(make()); },
                                           options);
  } catch (const InternalError& error) {
    throw ConfigError(fmt::format("{} cannot be started: {}", module.library, error.what()));
  }
}

}  // namespace syncopate::mpi
