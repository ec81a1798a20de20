#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "cli/doctor/finding.hpp"

/// What the doctor looks at on a host, without libtorch. Each function makes one finding and throws
/// nothing; those that judge a figure are apart from those that ask the system for it.
namespace syncopate::cli {

// By a figure.
Finding judge_open_files(std::uint64_t limit);
Finding judge_locked_memory(std::uint64_t limit_bytes);
Finding judge_memory(std::uint64_t free_bytes);
Finding judge_disk(const std::filesystem::path& folder, std::uint64_t free_bytes);
/// `cpuinfo`: the text of /proc/cpuinfo.
Finding judge_processor(std::string_view cpuinfo, std::uint32_t cores);
/// `core`: what OpenBLAS takes the processor for; empty where libtorch has no OpenBLAS.
Finding judge_blas(std::string_view cpuinfo, std::string_view core);

// By a trial.
/// Sends a byte from this host to itself.
Finding try_loopback();
/// Takes and touches as much shared memory as two buffers of a mid-sized model need.
Finding try_shared_memory();
/// Reads all of a dataset.
Finding try_data(const std::string& name, const std::filesystem::path& folder);
/// Writes where runs are kept.
Finding try_run_folder(const std::filesystem::path& folder);
/// That somebody has set the clock.
Finding try_clock();

/// All of the above but those of the processor's libraries.
Findings examine_host(const std::string& data, const std::filesystem::path& data_dir,
                      const std::filesystem::path& runs);

}  // namespace syncopate::cli
