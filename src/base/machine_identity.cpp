#include "base/machine_identity.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

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

}  // namespace syncopate
