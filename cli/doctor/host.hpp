#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "cli/doctor/finding.hpp"

/// The doctor's checks of a host, without libtorch. Each function returns one finding and throws
/// nothing. The `judge_` functions check a given figure; the others also measure it.
namespace syncopate::cli {

// Checks of a given figure.
Finding judge_open_files(std::uint64_t limit);
Finding judge_locked_memory(std::uint64_t limit_bytes);
Finding judge_memory(std::uint64_t free_bytes);
Finding judge_disk(const std::filesystem::path& folder, std::uint64_t free_bytes);
/// `cpuinfo`: the text of /proc/cpuinfo.
Finding judge_processor(std::string_view cpuinfo, std::uint32_t cores);
/// `core`: the processor type that OpenBLAS detected; empty if libtorch has no OpenBLAS.
Finding judge_blas(std::string_view cpuinfo, std::string_view core);
/// `version`: MKL's description of its version. Never a problem: MKL supports new processors.
Finding judge_mkl(std::string_view version);

// Checks that try an operation.
/// Sends a byte from this host to itself.
Finding try_loopback();
/// Allocates and writes as much shared memory as two buffers of a mid-sized model need.
Finding try_shared_memory();
/// Reads all of a dataset.
Finding try_data(const std::string& name, const std::filesystem::path& folder);
/// Writes a file to the folder of runs.
Finding try_run_folder(const std::filesystem::path& folder);
/// Checks that the clock is set.
Finding try_clock();

/// All checks above except `judge_blas` and `judge_mkl`.
Findings examine_host(const std::string& data, const std::filesystem::path& data_dir,
                      const std::filesystem::path& runs);

}  // namespace syncopate::cli
