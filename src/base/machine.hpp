#pragma once

#include <string>
#include <string_view>

namespace syncopate {

/// An identity of the host for sharing memory: the same for two processes that see each other's
/// process numbers and the same network. It combines the running kernel with its namespaces of
/// processes and of the network, so that isolated containers count as hosts of their own.
std::string machine_identity();

/// The processor that the text of /proc/cpuinfo names: "AMD EPYC 9B14".
std::string processor_in(std::string_view cpuinfo);

/// This machine, for records and reports: "AMD EPYC 9B14, 2 cores".
std::string machine_text();

}  // namespace syncopate
