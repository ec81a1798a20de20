#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "job/launch/environment.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate {

/// This process among those that a launcher (mpirun, srun) started for one job.
struct Launch {
  std::string launcher;  ///< as people know it: "Open MPI's mpirun"
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string job;  ///< unlike other jobs of this user on a host; fits into a file's name
  std::optional<mpi::Library> mpi = {};  ///< empty: the launcher prepares for no library of ours

  friend bool operator==(const Launch&, const Launch&) = default;
};

/// What the environment says of a launcher; empty where none started this process, or started it
/// alone.
///
/// A step of Slurm counts, the batch script around it does not: what that starts runs once. Where a
/// launcher was itself started by another, as `mpirun` is within a step of Slurm, the inner one
/// counts.
///
/// Errors: ConfigError, for a rank or a size that is no number, or a rank beyond the size.
std::optional<Launch> launch_in(const Environment& environment);

/// The same of this process's own environment.
std::optional<Launch> own_launch();

/// The folder of the modules for MPI, where SYNCOPATE_MPI_MODULES names one; else empty.
std::string chosen_mpi_modules();

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
