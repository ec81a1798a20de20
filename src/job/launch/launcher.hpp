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
  std::optional<mpi::Library> mpi = {};  ///< empty: the launcher supports no known library
  std::uint32_t here = 0;                ///< ranks on this host; 0: the launcher does not say

  friend bool operator==(const Launch&, const Launch&) = default;
};

/// Reads the launcher's variables: last those by which torch.distributed finds its ranks
/// (`env://`), which any launcher may set. Empty where no launcher started this process, or where
/// it started only this one.
///
/// A step of Slurm is a launcher; the batch script around it is not, because it runs once. Where
/// one launcher started another, such as a step of Slurm that runs `mpirun`, the inner one counts.
///
/// `parent`: the name of the process that has started this one. What a user types into a shell that
/// `srun --pty` has started is no rank, though it has the variables of one.
///
/// Errors: ConfigError, for a rank or a size that is no number, for a rank beyond the size, and in
///         such a shell.
std::optional<Launch> launch_in(const Environment& environment, std::string_view parent = {});

/// Refuses at once ranks on several hosts that would wait for each other in vain. Errors:
/// ConfigError, which ends with `advice`.
void expect_one_host(const Launch& launch, std::string_view advice);

/// `launch_in` for the environment of this process.
std::optional<Launch> own_launch();

/// The folder of the modules for MPI, where SYNCOPATE_MPI_MODULES names one; else empty.
std::string chosen_mpi_modules();

/// Replaces this process by another program of Syncopate with the same arguments:
/// `syncopate-torch`, which has libtorch, or `syncopate-run`, which has not. They lie in the folder
/// of this program, or in ../libexec/syncopate/. First sets the variables of the numeric libraries
/// (`wanted_environment`), and logs them when verbose.
///
/// Errors: when there is no such program, ConfigError for `syncopate-torch`, which an installation
/// by pip has not, and Error for `syncopate-run`.
[[noreturn]] void become_torch_program(char** argv, std::uint32_t threads,
                                       log::Verbosity verbosity);
[[noreturn]] void become_run_program(char** argv, std::uint32_t threads, log::Verbosity verbosity);

/// Whether `become_torch_program` finds its program.
bool has_torch_program();
/// Errors: ConfigError, which says what an installation without it is for.
void expect_torch_program();

/// The folder of the cluster files of an installed program.
std::filesystem::path installed_clusters();

}  // namespace syncopate
