#include "job/launch/program_ends.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace syncopate {

/// A write of this size to a pipe is atomic.
void ProgramEnds::report(const ProgramEnd& end) {
  ssize_t written = 0;
  do {
    written = ::write(pipe_.write.get(), &end, sizeof end);
  } while (written < 0 && errno == EINTR);
  if (written != sizeof end) {
    throw_system_error("report the end of a program");
  }
}

std::vector<ProgramEnd> ProgramEnds::take() {
  std::vector<ProgramEnd> ends;
  std::array<ProgramEnd, 64> some{};
  ssize_t bytes = 0;
  while ((bytes = ::read(pipe_.read.get(), some.data(), sizeof some)) > 0) {
    ends.insert(ends.end(), some.begin(),
                some.begin() + bytes / static_cast<ssize_t>(sizeof(ProgramEnd)));
  }
  return ends;
}

}  // namespace syncopate
