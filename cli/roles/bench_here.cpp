#include "cli/roles/bench_here.hpp"

#include "base/errors.hpp"
#include "cli/bench/allreduce.hpp"

namespace syncopate::cli {

int bench_here(const BenchCommand& command) {
  if (command.benchmark == "allreduce") {
    return bench_allreduce(command);
  }
  throw InternalError("no benchmark is called " + command.benchmark);
}

}  // namespace syncopate::cli
