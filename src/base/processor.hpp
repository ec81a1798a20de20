#pragma once

#include <string>
#include <string_view>

namespace syncopate {

/// The processor that the text of /proc/cpuinfo names: "AMD EPYC 9B14".
std::string processor_in(std::string_view cpuinfo);

/// This machine, for records and reports: "AMD EPYC 9B14, 2 cores".
std::string machine_text();

}  // namespace syncopate
