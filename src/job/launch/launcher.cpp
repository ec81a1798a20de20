#include "job/launch/launcher.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "job/launch/environment.hpp"

namespace syncopate {
namespace {

/// The environment variables that a launcher sets for its processes.
struct Signs {
  const char* launcher;
  const char* present;  ///< a variable that only this launcher sets
  const char* rank;
  const char* size;
  const char* here;   ///< the number of ranks on this host; null: there is no such variable
  const char* local;  ///< the rank on this host; null: there is no such variable
  const char* job;    ///< a variable that differs between jobs; null: there is none
};

/// Inner launchers come before outer ones: see `launch_in`.
constexpr Signs known[] = {
    {"torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK",
     "MASTER_PORT"},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE"},
    {"MPICH's mpiexec", "HYDI_CONTROL_FD", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS",
     "MPI_LOCALRANKID", nullptr},
    // Slurm counts the ranks of a node, and several of its nodes may be one host.
    {"srun", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, "SLURM_LOCALID",
     "SLURM_JOB_ID"},
    {"a launcher that speaks PMI", "PMI_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS",
     "MPI_LOCALRANKID", "PMI_JOBID"},
    {"a launcher that sets MASTER_ADDR", "MASTER_ADDR", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
     "LOCAL_RANK", "MASTER_PORT"},
};

/// A launcher that sets MASTER_ADDR sets all variables of torch.distributed; a user's shell may
/// have only some of them.
bool is_present(const Environment& environment, const Signs& signs) {
  const bool is_plain = std::string_view(signs.present) == "MASTER_ADDR";
  const bool lacks = environment("RANK").empty() || environment("WORLD_SIZE").empty() ||
                     environment("MASTER_PORT").empty();
  return !environment(signs.present).empty() && !(is_plain && lacks);
}

std::uint32_t number_of(const Environment& environment, const char* launcher, const char* name) {
  const std::string value = environment(name);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    throw ConfigError(
        fmt::format("expected {} to set {} to a number, found '{}'", launcher, name, value));
  }
  return number;
}

/// Empty if the launcher does not set the number.
std::optional<std::uint32_t> number_if_set(const Environment& environment, const char* name) {
  const std::string text = name == nullptr ? "" : environment(name);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

/// Replaces all characters except letters, digits, '-' and '.' by '_'.
std::string fit_for_a_file(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; }, '_');
  return text;
}

/// The name of the job. If no variable distinguishes jobs, the id of the parent process does, which
/// starts all ranks of a host.
std::string job_of(const Environment& environment, const Signs& signs) {
  std::string name = signs.job == nullptr ? "" : environment(signs.job);
  if (name.empty()) {
    name = fmt::format("of-{}", ::getppid());
  }
  if (const std::string step = environment("SLURM_STEP_ID"); !step.empty()) {
    name += "." + step;
  }
  return fit_for_a_file(std::move(name));
}

/// Open MPI needs PMIx. MPICH needs PMI-1 or PMI-2; under Slurm PMI-2.
std::optional<mpi::Library> library_of(const Environment& environment, const Signs& signs) {
  if (std::string_view(signs.launcher) == "torchrun") {
    return std::nullopt;  // variables of MPI belong to a launcher that started torchrun
  }
  if (!environment("OMPI_COMM_WORLD_SIZE").empty()) {
    return mpi::Library::open_mpi;
  }
  const bool is_slurm = std::string_view(signs.launcher) == "srun";
  if (is_slurm && !environment("PMIX_RANK").empty()) {
    return mpi::Library::open_mpi;
  }
  return environment("PMI_RANK").empty() ? std::nullopt : std::optional(mpi::Library::mpich);
}

/// Only the first task of such a step has the terminal; the others have ended.
void expect_no_shell(const Environment& environment, std::string_view parent, std::uint32_t size) {
  const bool is_a_task = parent.empty() || parent == "slurmstepd";
  if (!is_a_task && !environment("SLURM_PTY_PORT").empty()) {
    throw ConfigError(fmt::format(
        "this shell is the first of {0} tasks of `srun --pty`, and what it starts is no "
        "rank of a job: for {0} ranks call `srun --overlap --ntasks={0} syncopate ...`, and "
        "for workers only on this machine `env --unset=SLURM_STEP_ID syncopate ...`",
        size));
  }
}

/// Empty if the parent runs a script or a command, which each task of a step may do, or if the
/// system does not show the name.
std::string name_of_parent() {
  std::ifstream words(fmt::format("/proc/{}/cmdline", ::getppid()));
  std::string name;
  std::getline(words, name, '\0');
  for (std::string word; std::getline(words, word, '\0');) {
    if (!word.starts_with('-') || word == "-c") {
      return "";
    }
  }
  return name.substr(name.rfind('/') + 1);
}

}  // namespace

std::optional<Launch> launch_in(const Environment& environment, std::string_view parent) {
  const auto signs = std::find_if(std::begin(known), std::end(known), [&](const Signs& candidate) {
    return is_present(environment, candidate);
  });
  if (signs == std::end(known)) {
    return std::nullopt;
  }
  const std::uint32_t rank = number_of(environment, signs->launcher, signs->rank);
  const std::uint32_t size = number_of(environment, signs->launcher, signs->size);
  if (rank >= size) {
    throw ConfigError(
        fmt::format("{} calls this process rank {} of {}: {} and {} contradict each other",
                    signs->launcher, rank, size, signs->rank, signs->size));
  }
  if (size == 1) {
    return std::nullopt;
  }
  if (std::string_view(signs->launcher) == "srun") {
    expect_no_shell(environment, parent, size);
  }
  return Launch{.launcher = signs->launcher,
                .rank = rank,
                .size = size,
                .job = job_of(environment, *signs),
                .mpi = library_of(environment, *signs),
                .here = number_if_set(environment, signs->here).value_or(0),
                .local = number_if_set(environment, signs->local)};
}

void expect_one_host(const Launch& launch, std::string_view advice) {
  if (launch.here != 0 && launch.here < launch.size) {
    throw ConfigError(fmt::format(
        "{} has started {} of {} ranks on this host, but these ranks find each other only on one "
        "host: {}",
        launch.launcher, launch.here, launch.size, advice));
  }
}

std::optional<Launch> own_launch() {
  return launch_in(from_environment, name_of_parent());
}

std::string chosen_mpi_modules() {
  return from_environment("SYNCOPATE_MPI_MODULES");
}

namespace {

constexpr const char* torch_program = "syncopate-torch";
constexpr const char* run_program = "syncopate-run";

std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

/// The paths at which another program of Syncopate may be: in a build tree, and in an installation.
std::array<std::filesystem::path, 2> places_of(const char* name) {
  const auto folder = program_folder();
  return {folder / name, folder.parent_path() / "libexec/syncopate" / name};
}

/// Returns an empty path if there is none.
std::filesystem::path own_program(const char* name) {
  for (const auto& path : places_of(name)) {
    if (::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return {};
}

/// "this command needs the program syncopate-run, which is neither … nor …"
std::string lack_of(const char* name) {
  const auto [beside, installed] = places_of(name);
  return fmt::format("this command needs the program {}, which is neither {} nor {}", name,
                     beside.string(), installed.string());
}

[[noreturn]] void become(const std::filesystem::path& program, char** argv, std::uint32_t threads,
                         log::Verbosity verbosity) {
  log::set_up(verbosity);
  set_environment(wanted_environment(read_file("/proc/cpuinfo"), threads),
                  [](const std::string& line) { log::debug("{}", line); });
  ::execv(program.c_str(), argv);
  throw Error(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
}

}  // namespace

bool has_torch_program() {
  return !own_program(torch_program).empty();
}

void expect_torch_program() {
  if (!has_torch_program()) {
    throw ConfigError(fmt::format(
        "{}: an installation by pip has no libtorch, but the commands run, report, data, schemes, "
        "trace, export and import; for the others build Syncopate from its sources by script/build "
        "(SYNCOPATE_TORCH=ON), or install its Debian packages (docs/start/install.md)",
        lack_of(torch_program)));
  }
}

void become_torch_program(char** argv, std::uint32_t threads, log::Verbosity verbosity) {
  expect_torch_program();
  become(own_program(torch_program), argv, threads, verbosity);
}

void become_run_program(char** argv, std::uint32_t threads, log::Verbosity verbosity) {
  const auto program = own_program(run_program);
  if (program.empty()) {
    throw Error(lack_of(run_program) + "; install Syncopate as a whole");
  }
  become(program, argv, threads, verbosity);
}

std::filesystem::path installed_clusters() {
  return program_folder().parent_path() / "share/syncopate/clusters";
}

}  // namespace syncopate
