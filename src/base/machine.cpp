#include "base/machine.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

#include "base/cores.hpp"
#include "base/file.hpp"

namespace syncopate {
namespace {

std::string inode_of(const char* name) {
  struct stat found {};
  return ::stat(name, &found) == 0 ? std::to_string(found.st_ino) : "?";
}

}  // namespace

std::string machine_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  return fmt::format("{}/{}/{}", boot, inode_of("/proc/self/ns/pid"),
                     inode_of("/proc/self/ns/net"));
}

std::string processor_in(std::string_view cpuinfo) {
  const auto line = cpuinfo.find("model name");
  const auto colon = cpuinfo.find(": ", line);
  if (line == std::string_view::npos || colon == std::string_view::npos) {
    return "processor of unknown name";
  }
  return std::string(cpuinfo.substr(colon + 2, cpuinfo.find('\n', colon) - colon - 2));
}

std::string machine_text() {
  const std::uint32_t cores = available_cores();
  return fmt::format("{}, {} {}", processor_in(read_file("/proc/cpuinfo")), cores,
                     cores == 1 ? "core" : "cores");
}

}  // namespace syncopate
