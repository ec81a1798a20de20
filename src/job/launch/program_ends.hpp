#pragma once

#include <cstdint>
#include <vector>

#include "job/launch/descriptor.hpp"

namespace syncopate {

/// A program of the user that has ended.
struct ProgramEnd {
  std::uint32_t rank = 0;
  int wait_status = 0;  ///< from `waitpid`
};

/// The pipe by which a supervisor reports the ends of programs to the coordinator, which is a
/// separate process: the coordinator itself notices only the ends of programs that have connected
/// to it.
class ProgramEnds {
 public:
  /// Errors: Error.
  ProgramEnds() : pipe_(make_pipe()) {}

  /// For the supervisor. Errors: Error.
  void report(const ProgramEnd& end);
  /// For the coordinator: the ends since the last call. Does not wait.
  std::vector<ProgramEnd> take();

 private:
  Pipe pipe_;  ///< both processes keep both ends open, so that neither gets SIGPIPE
};

}  // namespace syncopate
