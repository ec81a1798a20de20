#include "cli/doctor/host.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "base/cores.hpp"
#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/machine.hpp"
#include "cli/view/render.hpp"
#include "cli/view/table.hpp"
#include "data/dataset.hpp"
#include "job/launch/descriptor.hpp"
#include "job/launch/environment.hpp"
#include "transport/shm/segment.hpp"
#include "transport/tcp/sockets.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t enough_files = 1024;
constexpr std::uint64_t enough_memory = 1024 * mebibyte;
constexpr std::uint64_t enough_disk = 1024 * mebibyte;
constexpr std::size_t two_buffers = 2 * 44'701'480;  ///< of ResNet-18, float32

std::string bytes_of(std::uint64_t bytes) {
  return bytes_text(static_cast<double>(bytes));
}

std::string limit_text(std::uint64_t limit) {
  return limit == RLIM_INFINITY ? "no limit" : bytes_of(limit);
}

std::uint64_t limit_of(__rlimit_resource what) {
  rlimit limit{};
  ::getrlimit(what, &limit);
  return limit.rlim_cur;
}

bool has_feature(std::string_view cpuinfo, const char* feature) {
  return cpuinfo.find(fmt::format(" {} ", feature)) != std::string_view::npos ||
         cpuinfo.find(fmt::format(" {}\n", feature)) != std::string_view::npos;
}

std::string reason() {
  return std::strerror(errno);
}

/// Errors: Error.
void send_to_oneself() {
  const ListeningSocket listener = listen_on_loopback();
  const tcp::Endpoint there = tcp::parse_address(listener.address);
  const Descriptor caller(::socket(there.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(caller.get(), there.data(), static_cast<socklen_t>(there.size())) != 0) {
    throw_system_error("connect to this host");
  }
  const Descriptor called(::accept(listener.socket.get(), nullptr, nullptr));
  char byte = 1;
  if (::send(caller.get(), &byte, 1, MSG_NOSIGNAL) != 1 || ::recv(called.get(), &byte, 1, 0) != 1) {
    throw_system_error("send a byte to this host");
  }
}

std::uint64_t available_memory() {
  std::ifstream facts("/proc/meminfo");
  for (std::string line; std::getline(facts, line);) {
    if (line.starts_with("MemAvailable:")) {
      return std::stoull(line.substr(13)) * 1024;
    }
  }
  return 0;
}

std::uint64_t free_bytes_in(const fs::path& folder) {
  struct statvfs facts {};
  return ::statvfs(folder.c_str(), &facts) == 0 ? facts.f_bavail * facts.f_frsize : 0;
}

/// The folder, or its nearest parent that exists.
fs::path nearest_that_is_there(fs::path folder) {
  folder = fs::absolute(folder);
  std::error_code unknown;
  while (!fs::exists(folder, unknown) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

}  // namespace

Finding judge_open_files(std::uint64_t limit) {
  Finding finding{.subject = "open files",
                  .ok = limit >= enough_files,
                  .text = fmt::format("up to {}", grouped(limit))};
  if (!finding.ok) {
    finding.text +=
        fmt::format("; expected at least {}: each pair of nodes uses some", grouped(enough_files));
    finding.advice = "ulimit -n 4096";
  }
  return finding;
}

Finding judge_locked_memory(std::uint64_t limit_bytes) {
  Finding finding{.subject = "locked memory", .text = limit_text(limit_bytes)};
  if (limit_bytes != RLIM_INFINITY) {
    finding.text += "; MPI over InfiniBand needs it unlimited";
  }
  return finding;
}

Finding judge_memory(std::uint64_t free_bytes) {
  Finding finding{.subject = "memory",
                  .ok = free_bytes >= enough_memory,
                  .text = fmt::format("{} free", bytes_of(free_bytes))};
  if (!finding.ok) {
    finding.text += fmt::format(", expected at least {}", bytes_of(enough_memory));
    finding.advice = "end other programs, or ask the cluster for more (Slurm: --mem)";
  }
  return finding;
}

Finding judge_disk(const fs::path& folder, std::uint64_t free_bytes) {
  Finding finding{.subject = "disk",
                  .ok = free_bytes >= enough_disk,
                  .text = fmt::format("{} free in {}", bytes_of(free_bytes), folder.string())};
  if (!finding.ok) {
    finding.text += fmt::format(", expected at least {} for checkpoints", bytes_of(enough_disk));
    finding.advice = "remove old runs, or keep new ones elsewhere: --run-dir FOLDER";
  }
  return finding;
}

Finding judge_processor(std::string_view cpuinfo, std::uint32_t cores) {
  const char* vectors = has_feature(cpuinfo, "avx512f") ? "AVX-512"
                        : has_feature(cpuinfo, "avx2")  ? "AVX2"
                        : has_feature(cpuinfo, "asimd") ? "NEON"
                                                        : nullptr;
  Finding finding{
      .subject = "processor",
      .text = fmt::format("{}, {} {}, {}", processor_in(cpuinfo), cores,
                          cores == 1 ? "core" : "cores", vectors ? vectors : "no AVX2")};
  return finding;
}

Finding judge_blas(std::string_view cpuinfo, std::string_view core) {
  Finding finding{.subject = "BLAS", .text = fmt::format("OpenBLAS for {}", core)};
  if (core.empty()) {
    finding.ok = false;
    finding.text = "libtorch computes without OpenBLAS: matrix products are many times slower";
    finding.advice = "apt-get install libopenblas0-pthread";
    return finding;
  }
  constexpr std::array with_avx2{"Haswell",        "Zen",      "SkylakeX", "Cooperlake",
                                 "Sapphirerapids", "Excavator"};
  const bool is_young = std::find(with_avx2.begin(), with_avx2.end(), core) != with_avx2.end();
  if (has_feature(cpuinfo, "avx2") && !is_young) {
    finding.ok = false;
    finding.text += ", without this processor's AVX2: matrix products take several times as long";
    finding.advice = has_feature(cpuinfo, "avx512f")
                         ? "unset OPENBLAS_CORETYPE, or set it to SKYLAKEX"
                         : "unset OPENBLAS_CORETYPE, or set it to HASWELL";
  }
  return finding;
}

Finding judge_mkl(std::string_view version) {
  constexpr std::string_view mark = "Version ";
  const std::size_t begin = version.find(mark);
  const std::string_view number =
      begin == std::string_view::npos ? version : version.substr(begin + mark.size());
  return {.subject = "BLAS", .text = fmt::format("MKL {}", number.substr(0, number.find('-')))};
}

Finding try_loopback() {
  Finding finding{.subject = "loopback", .text = "this host reaches itself"};
  try {
    send_to_oneself();
  } catch (const std::exception& error) {
    finding.ok = false;
    finding.text = fmt::format("this host does not reach itself at 127.0.0.1: {}", error.what());
    finding.advice =
        "check that the interface is up (ip link set lo up) and that no firewall blocks it";
  }
  return finding;
}

Finding try_shared_memory() {
  Finding finding{.subject = "shared memory",
                  .text = fmt::format("{} allocated and freed", bytes_of(two_buffers))};
  try {
    shm::Segment::create(two_buffers).reserve(0, two_buffers);
  } catch (const std::exception& error) {
    finding.ok = false;
    finding.text = error.what();
    finding.advice =
        "raise that limit (ulimit -f unlimited; Slurm: --mem), or train with "
        "--transport tcp";
  }
  return finding;
}

Finding try_data(const std::string& name, const fs::path& folder) {
  Finding finding{.subject = "dataset", .text = ""};
  try {
    const Dataset dataset = load_dataset(name, folder);
    finding.text = fmt::format("{}: {} samples to train with, {} to test", name,
                               grouped(dataset.train.samples()), grouped(dataset.test.samples()));
  } catch (const std::exception& error) {
    finding.ok = false;
    finding.text = error.what();
    finding.advice = "choose another one with --data, or its folder with --data-dir";
  }
  return finding;
}

Finding try_run_folder(const fs::path& folder) {
  const fs::path existing = nearest_that_is_there(folder);
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    return {.subject = "disk",
            .ok = false,
            .text = fmt::format("cannot write runs to {}: {}", existing.string(), reason()),
            .advice = "start in a writable folder, or choose one with --run-dir FOLDER"};
  }
  return judge_disk(existing, free_bytes_in(existing));
}

Finding try_clock() {
  using std::chrono::system_clock;
  constexpr auto earliest = std::chrono::sys_days(std::chrono::year{2024} / 1 / 1);
  Finding finding{.subject = "clock", .text = "set"};
  if (system_clock::now() < earliest) {
    finding.ok = false;
    finding.text = "the date is before 2024: run folders would get wrong names";
    finding.advice = "set the clock, or run an NTP client";
  }
  return finding;
}

Findings examine_host(const std::string& data, const fs::path& data_dir, const fs::path& runs) {
  return {judge_processor(read_file("/proc/cpuinfo"), available_cores()),
          judge_memory(available_memory()),
          try_shared_memory(),
          judge_open_files(limit_of(RLIMIT_NOFILE)),
          judge_locked_memory(limit_of(RLIMIT_MEMLOCK)),
          try_clock(),
          try_loopback(),
          try_data(data, data_dir),
          try_run_folder(runs)};
}

}  // namespace syncopate::cli
