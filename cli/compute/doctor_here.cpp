#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/printable.hpp"
#include "base/random.hpp"
#include "base/whole.hpp"
#include "cli/bench/bench_command.hpp"
#include "cli/bench/nodes.hpp"
#include "cli/compute/compute.hpp"
#include "cli/doctor/host.hpp"
#include "cli/doctor/link_matrix.hpp"
#include "cli/view/table.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/known_coordinator.hpp"
#include "job/launch/rendezvous.hpp"
#include "job/roles/launched_rank.hpp"
#include "telemetry/json_lines.hpp"
#include "torch/factory.hpp"
#include "transport/steady_time.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::cli {
namespace {

using std::chrono::milliseconds;

void append(Findings& findings, Findings more) {
  findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

std::string built_modules() {
  std::string built;
  for (const auto& [library, name] :
       {std::pair{mpi::Library::open_mpi, "Open MPI"}, std::pair{mpi::Library::mpich, "MPICH"}}) {
    if (mpi::is_built(library, chosen_mpi_modules())) {
      built += fmt::format("{}{}", built.empty() ? "" : " and ", name);
    }
  }
  return built.empty() ? "no MPI module is built" : "built for " + built;
}

bool goes_by_mpi(const DoctorCommand& command) {
  if (command.transport != TransportKind::automatic) {
    return command.transport == TransportKind::mpi;
  }
  if (known_coordinator(from_environment)) {
    return false;
  }
  return command.launch->mpi && mpi::is_built(*command.launch->mpi, chosen_mpi_modules());
}

/// Compares the launcher of this process with the MPI libraries of the build.
Finding examine_launcher(const DoctorCommand& command) {
  if (!command.launch) {
    return {.subject = "MPI",
            .text = fmt::format("{}; no launcher has started this process", built_modules())};
  }
  const Launch& launch = *command.launch;
  Finding finding{.subject = "MPI",
                  .text = fmt::format("{} ranks, started by {}; {}", launch.size, launch.launcher,
                                      built_modules())};
  if (const auto known = known_coordinator(from_environment)) {
    finding.text += fmt::format("; those without MPI meet at {}, encrypted", known->address);
  } else if (!launch.mpi) {
    finding.text += "; it sets up no MPI, so all ranks must run on one host";
    finding.advice =
        "for ranks on several hosts: SYNCOPATE_COORDINATOR=HOST:PORT and SYNCOPATE_KEY_FILE=FILE "
        "on all, or srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)";
  } else if (!goes_by_mpi(command) && command.transport == TransportKind::automatic) {
    finding.ok = false;
    finding.text = fmt::format("started by {}, but {}", launch.launcher, built_modules());
    finding.advice = *launch.mpi == mpi::Library::open_mpi
                         ? "apt-get install libopenmpi-dev and build again, or use MPICH's mpiexec"
                         : "apt-get install libmpich-dev and build again, or use Open MPI's mpirun";
  }
  return finding;
}

Finding ask_coordinator(const DoctorCommand& command) {
  Finding finding{.subject = "coordinator", .text = ""};
  try {
    const TimePoint begun = steady_now();
    const auto transport = join_over("shm", {.token = command.token,
                                             .coordinator = command.join,
                                             .address = {},
                                             .timeout = milliseconds(5000),
                                             .encrypted = !command.token.empty()});
    finding.text = fmt::format("a coordinator of this version answers at {} within {:.1f} ms",
                               command.join, to_seconds(steady_now() - begun) * 1e3);
    transport->close(steady_now() + std::chrono::seconds(1));
  } catch (const std::exception& error) {
    finding.ok = false;
    finding.text = error.what();
    finding.advice =
        "check that the coordinator runs, that it listens at this address, that --secret names "
        "the same file, and that no firewall blocks the port";
  }
  return finding;
}

Findings examine(const DoctorCommand& command) {
  Findings findings = examine_host(command.data, command.data_dir, command.runs);
  append(findings, examine_devices());
  findings.push_back(examine_launcher(command));
  if (!command.join.empty()) {
    findings.push_back(ask_coordinator(command));
  }
  return findings;
}

int say(const DoctorCommand& command, const Findings& findings, const LinkMatrix* links) {
  const bool ok = all_ok(findings);
  if (command.json) {
    nlohmann::ordered_json json{{"ok", ok}, {"findings", to_json(findings)}};
    if (links != nullptr) {
      add_to(json, *links);
    }
    fmt::print("{}\n", json_text(json));
  } else {
    // Findings and hosts of other ranks come as messages.
    const auto print = [](const std::vector<std::string>& lines, const char* before) {
      fmt::print("{}{}\n", before, printable_lines(fmt::format("{}", fmt::join(lines, "\n"))));
    };
    print(lines_of(findings, command.launch ? command.launch->size : 1), "");
    if (links != nullptr) {
      print(lines_of(*links), "\n");
    }
    fmt::print("\n{}\n", ok ? "no problem found" : "problems found: see the advice above");
  }
  return ok ? exit_status::success : exit_status::failure;
}

Attendance attendance_of(const DoctorCommand& command) {
  return {
      .nodes = command.launch->size, .index = command.launch->rank, .patience = command.patience};
}

/// A collective; rank 0 prints.
int consult_and_say(Group& all, const DoctorCommand& command, const Findings& own) {
  const auto all_know = consult(all, own);
  return all_know ? say(command, all_know->findings, &all_know->links) : exit_status::success;
}

/// Every rank takes part.
int consult_over(std::unique_ptr<Transport> transport, const DoctorCommand& command,
                 const Findings& own) {
  int status = exit_status::success;
  take_part(std::move(transport), attendance_of(command),
            [&](World&, Group& all) { status = consult_and_say(all, command, own); });
  return status;
}

int consult_by_mpi(const DoctorCommand& command, const Findings& own) {
  return run_as_mpi_rank(*command.launch, false, [&](mpi::Session& session) {
    return consult_over(command.launch->rank == 0 ? session.listen({}) : session.join({}), command,
                        own);
  });
}

int consult_by_sockets(const DoctorCommand& command, const Findings& own) {
  const std::string_view transport = command.transport == TransportKind::tcp ? "tcp" : "shm";
  if (const auto known = known_coordinator(from_environment)) {
    int status = exit_status::success;
    take_part_between_hosts(
        *known, transport, {.token = known->key, .encrypted = true}, attendance_of(command),
        [&](World&, Group& all) { status = consult_and_say(all, command, own); });
    return status;
  }
  Rendezvous rendezvous(command.launch->job);
  if (command.launch->rank > 0) {
    const auto place = rendezvous.await(command.patience);
    return consult_over(join_over(transport, {.token = place.token, .coordinator = place.address}),
                        command, own);
  }
  const std::string token = unguessable_token();
  auto coordinator = listen_over(transport, {.token = token});
  rendezvous.publish({.address = coordinator->address(), .token = token});
  return consult_over(std::move(coordinator), command, own);
}

/// If the ranks cannot exchange their findings, prints those of rank 0.
int examine_ranks(const DoctorCommand& command, Findings own) {
  try {
    return goes_by_mpi(command) ? consult_by_mpi(command, own) : consult_by_sockets(command, own);
  } catch (const std::exception& error) {
    if (command.launch->rank > 0) {
      // Rank 0 knows no more than that this one is missing.
      print_error(fmt::format("rank {}: {}", command.launch->rank, error.what()).c_str());
      return exit_status::failure;
    }
    own.push_back({.subject = "ranks",
                   .ok = false,
                   .text = error.what(),
                   .advice =
                       "check that one launcher started all ranks, that it belongs to the MPI that "
                       "Syncopate was built with, and that the hosts reach each other"});
    return say(command, own, nullptr);
  }
}

}  // namespace

int doctor_here(const DoctorCommand& command) {
  Findings findings = examine(command);
  return command.launch ? examine_ranks(command, std::move(findings))
                        : say(command, findings, nullptr);
}

namespace {

constexpr std::uint32_t samples = 64;
constexpr Effort effort{.seconds = 0.3};

/// Empty if libtorch has no OpenBLAS.
std::string blas_core() {
  using CoreName = char* (*)();
  const auto core = reinterpret_cast<CoreName>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return core == nullptr ? "" : core();
}

Finding blas() {
  const std::string mkl = torch_backend::mkl_version();
  Finding finding =
      mkl.empty() ? judge_blas(read_file("/proc/cpuinfo"), blas_core()) : judge_mkl(mkl);
  finding.text += fmt::format(", {:.0f} GFLOP/s a core", torch_backend::matrix_speed() / 1e9);
  return finding;
}

/// The driver's own description of its version; empty without a driver.
std::string gpu_driver() {
  const std::filesystem::path version("/proc/driver/nvidia/version");
  if (!std::filesystem::exists(version)) {
    return {};
  }
  const std::string text = read_file(version);
  return text.substr(0, text.find('\n'));
}

Finding judge_gpus(const std::string& driver, std::size_t devices) {
  const std::string torch = "libtorch " + torch_backend::libtorch_version();
  if (devices > 0) {
    return {.subject = "GPUs", .text = fmt::format("{} through {}; {}", devices, torch, driver)};
  }
  if (driver.empty()) {
    return {.subject = "GPUs", .text = fmt::format("none, and no driver; {}", torch)};
  }
  return {.subject = "GPUs",
          .ok = false,
          .text = fmt::format("there is a driver ({}), but {} sees no device", driver, torch),
          .advice =
              "build with a libtorch that has CUDA (CMAKE_PREFIX_PATH), and check "
              "CUDA_VISIBLE_DEVICES and nvidia-smi"};
}

Finding speed_of(const std::string& device) {
  Finding finding{.subject = "training", .text = ""};
  try {
    const double speed = training_speed(
        {.network = "lenet5", .device = device, .samples = samples, .effort = effort});
    finding.text = fmt::format("{}: {} samples/s (lenet5, mini-batches of {})", device,
                               grouped(whole_of(speed)), samples);
  } catch (const std::exception& error) {
    finding.ok = false;
    finding.text = fmt::format("{} does not train: {}", device, error.what());
    finding.advice = "look at the driver and the device's memory (nvidia-smi)";
  }
  return finding;
}

}  // namespace

Findings examine_devices() {
  const std::vector<std::string> devices = torch_backend::available_devices();
  Findings findings{blas(), judge_gpus(gpu_driver(), devices.size() - 1)};
  for (const std::string& device : devices) {
    findings.push_back(speed_of(device));
  }
  return findings;
}

}  // namespace syncopate::cli
