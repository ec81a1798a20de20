#include "base/processor.hpp"

#include <fmt/format.h>

#include <thread>

#include "base/file.hpp"

namespace syncopate {

std::string processor_in(std::string_view cpuinfo) {
  const auto line = cpuinfo.find("model name");
  const auto colon = cpuinfo.find(": ", line);
  if (line == std::string_view::npos || colon == std::string_view::npos) {
    return "processor of unknown name";
  }
  return std::string(cpuinfo.substr(colon + 2, cpuinfo.find('\n', colon) - colon - 2));
}

std::string machine_text() {
  const unsigned cores = std::thread::hardware_concurrency();
  return fmt::format("{}, {} {}", processor_in(read_file("/proc/cpuinfo")), cores,
                     cores == 1 ? "core" : "cores");
}

}  // namespace syncopate
