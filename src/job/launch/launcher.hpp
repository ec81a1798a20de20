#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "job/launch/environment.hpp"
#include "transport/mpi/mpi_session.hpp"

namespace syncopate {

/// The rank of this process among the processes that a launcher (mpirun, srun) started for one job.
struct Launch {
  std::string launcher;  ///< for messages: "Open MPI's mpirun"
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string job;  ///< distinguishes jobs of this user on a host; valid in a file name
  std::optional<mpi::Library> mpi = {};     ///< empty: the launcher supports no known library
  std::uint32_t here = 0;                   ///< ranks on this host; 0: the launcher does not say
  std::optional<std::uint32_t> local = {};  ///< rank on this host; empty: the launcher does not say

  friend bool operator==(const Launch&, const Launch&) = default;
};

/// Reads the launcher's variables; as the last ones those by which torch.distributed finds its
/// ranks (`env://`), which any launcher may set. Empty if no launcher started this process, or if
/// it started only this one.
///
/// A step of Slurm is a launcher; the batch script around it is not, because it runs once. If one
/// launcher started another, such as a step of Slurm that runs `mpirun`, the inner one counts.
///
/// `parent`: the name of the process that has started this one. A command that a user types into a
/// shell of `srun --pty` is no rank, although it has the variables of one.
///
/// Errors: ConfigError if a rank or a size is not a number, if the rank is beyond the size, and in
///         such a shell.
std::optional<Launch> launch_in(const Environment& environment, std::string_view parent = {});

/// Refuses ranks on several hosts, which would wait for each other without success. Errors:
/// ConfigError, which ends with `advice`.
void expect_one_host(const Launch& launch, std::string_view advice);

/// `launch_in` for the environment of this process.
std::optional<Launch> own_launch();

/// The folder of the modules for MPI that SYNCOPATE_MPI_MODULES names; empty if it is not set.
std::string chosen_mpi_modules();

/// Replaces this process by another program of Syncopate with the same arguments:
/// `syncopate-torch`, which has libtorch, or `syncopate-run`, which does not. They are in the
/// folder of this program, or in ../libexec/syncopate/. First sets the variables of the numeric
/// libraries (`wanted_environment`), and logs them when verbose.
///
/// Errors: ConfigError if there is no `syncopate-torch`, as in an installation by pip; Error if
/// there is no `syncopate-run`.
[[noreturn]] void become_torch_program(char** argv, std::uint32_t threads,
                                       log::Verbosity verbosity);
[[noreturn]] void become_run_program(char** argv, std::uint32_t threads, log::Verbosity verbosity);

/// True if `become_torch_program` finds its program.
bool has_torch_program();
/// Errors: ConfigError, which lists the commands of an installation without it.
void expect_torch_program();

/// The folder of the cluster files of an installed program.
std::filesystem::path installed_clusters();

}  // namespace syncopate
