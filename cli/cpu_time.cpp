#include "cli/cpu_time.hpp"

#include <ctime>

namespace syncopate::cli {

double cpu_seconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace syncopate::cli
