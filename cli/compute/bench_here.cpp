#include "cli/compute/bench_here.hpp"

#include <map>
#include <string>

#include "base/errors.hpp"
#include "cli/bench/allreduce.hpp"
#include "cli/bench/codecs.hpp"
#include "cli/bench/kernels.hpp"
#include "cli/bench/latency.hpp"
#include "cli/bench/push_pull.hpp"
#include "cli/compute/bench_step.hpp"

namespace syncopate::cli {

int bench_here(const BenchCommand& command) {
  const std::map<std::string, int (*)(const BenchCommand&)> benchmarks{
      {"allreduce", bench_allreduce}, {"push-pull", bench_push_pull}, {"latency", bench_latency},
      {"kernels", bench_kernels},     {"codecs", bench_codecs},       {"step", bench_step}};
  const auto found = benchmarks.find(command.benchmark);
  if (found == benchmarks.end()) {
    throw InternalError("no benchmark is called " + command.benchmark);
  }
  return found->second(command);
}

}  // namespace syncopate::cli
