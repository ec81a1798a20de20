#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace syncopate {

/// The cores that some processes of this host may use together: the union of their affinities, such
/// as those that Slurm and taskset set, limited by the processor time that the cgroups of this
/// process get, such as that of a container. At least 1. A process that has ended counts nothing.
///
/// std::thread::hardware_concurrency counts the cores that the host has online.
std::uint32_t available_cores(std::span<const pid_t> processes);

/// The cores that this process may use.
std::uint32_t available_cores();

/// The processor time, in cores, that cgroups allow: the least of a cgroup and those above it.
/// Empty without a limit. `hierarchy`: where the system shows cgroups, /sys/fs/cgroup.
/// `membership`: the content of /proc/self/cgroup. Reads versions 1 and 2.
std::optional<double> cores_of_cgroups(const std::filesystem::path& hierarchy,
                                       std::string_view membership);

}  // namespace syncopate
