#include "transport/mpi/loaded_session.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "base/cores.hpp"
#include "base/errors.hpp"
#include "base/log.hpp"
#include "base/machine.hpp"
#include "transport/mpi/module_file.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::mpi {
namespace {

std::vector<std::uint32_t> numbered(const std::vector<std::uint64_t>& names) {
  std::map<std::uint64_t, std::uint32_t> known;
  std::vector<std::uint32_t> numbers;
  for (const std::uint64_t name : names) {
    const auto next = static_cast<std::uint32_t>(known.size());
    numbers.push_back(known.try_emplace(name, next).first->second);
  }
  return numbers;
}

/// Loads the module with global symbols, which parts of MPI that are loaded later look up. The
/// module is never unloaded: MPI runs code in it at the end of the process.
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

LoadedSession::LoadedSession(const std::function<std::unique_ptr<Calls>()>& make,
                             const SessionOptions& options)
    : engine_(make) {
  learn(options);
}

void LoadedSession::learn(const SessionOptions& options) {
  const auto lock = engine_.acquire_lock();
  Calls& calls = engine_.calls();
  rank_ = calls.rank();
  size_ = calls.size();
  library_ = calls.library();
  if (size_ != options.expected_size) {
    throw ConfigError(
        fmt::format("expected {} ranks, as the launcher has started, found that {} sees {}: the "
                    "launcher belongs to another MPI, so "
                    "every process sees itself as the only one; start this with the mpirun of "
                    "{}, or with srun --mpi=pmix",
                    options.expected_size, library_, size_, library_));
  }
  std::vector<std::uint64_t> names(size_);
  calls.gather(std::hash<std::string>()(machine_identity()), names);
  hosts_ = numbered(names);
  std::vector<std::uint64_t> processes(size_);
  calls.gather(static_cast<std::uint64_t>(::getpid()), processes);
  std::vector<pid_t> here;
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    if (hosts_[rank] == hosts_[rank_]) {
      here.push_back(static_cast<pid_t>(processes[rank]));
    }
  }
  if (here.size() > available_cores(here)) {  // a launcher may have bound each rank to a core
    engine_.share_cores();
  }
  const std::uint32_t ranks = calls.form_reducing_group(options.allreduce);
  if (options.allreduce) {
    allreduce_ = std::make_unique<MpiAllreduce>(engine_, ranks);
  }
  together_ = true;
}

/// Waits for the other ranks in a barrier that does not keep a core busy, as that in MPI_Finalize
/// would.
LoadedSession::~LoadedSession() {
  try {
    if (together_) {
      barrier(no_deadline);
    }
  } catch (const std::exception& error) {
    log::warn("not all ranks ended together: {}", error.what());
  }
}

std::unique_ptr<Transport> LoadedSession::listen(const ListenOptions& options) {
  return std::make_unique<Node>(engine_, Node::Options{.token = options.token,
                                                       .shares_memory = options.shared_memory,
                                                       .is_coordinator = true,
                                                       .allreduce = allreduce_.get()});
}

std::unique_ptr<Transport> LoadedSession::join(const JoinOptions& options) {
  auto node = std::make_unique<Node>(engine_, Node::Options{.token = options.token,
                                                            .shares_memory = options.shared_memory,
                                                            .is_coordinator = false,
                                                            .allreduce = allreduce_.get()});
  node->join(options.timeout);
  return node;
}

void LoadedSession::barrier(TimePoint deadline) {
  Calls::Request all_are_here;
  {
    const auto lock = engine_.acquire_lock();
    all_are_here = engine_.calls().barrier(Calls::Ranks::all);
  }
  try {
    engine_.await(all_are_here, deadline);
  } catch (const Error&) {
    together_ = false;
    throw;
  }
}

/// Waits a little before the abort: the launcher reads this process's last lines on another
/// channel.
void LoadedSession::abort(int status) {
  WakeupEvent().await(std::chrono::milliseconds(200));
  const auto lock = engine_.acquire_lock();
  engine_.calls().abort(status);
  throw InternalError("MPI_Abort has returned");
}

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

namespace syncopate {
namespace {

bool has_session(const TransportOptions& options) {
  return options.session != nullptr;
}

std::unique_ptr<Transport> listen(const TransportOptions& options) {
  return options.session->listen({.token = options.token});
}

std::unique_ptr<Transport> join(const TransportOptions& options) {
  mpi::JoinOptions join{.token = options.token};
  join.timeout = options.timeout.value_or(join.timeout);
  return options.session->join(join);
}

}  // namespace

TransportSpec mpi_transport() {
  return {"mpi", has_session, listen, join};
}

}  // namespace syncopate
