#include "job/launch/process_stat.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

namespace syncopate {

std::istringstream stat_behind_name(pid_t process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  const std::string text(std::istreambuf_iterator<char>(stat), {});
  const std::size_t end_of_name = text.rfind(')');
  return std::istringstream(end_of_name == std::string::npos ? "" : text.substr(end_of_name + 1));
}

bool is_stopped(pid_t process) {
  char state = 0;
  return (stat_behind_name(process) >> state) && state == 'T';
}

}  // namespace syncopate
