#include "cli/roles/step_cost.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace syncopate::cli {
namespace {

constexpr std::size_t measured_steps = 3;

double cpu_seconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double measure_step_cost(Replica& replica, const Dataset& dataset, BatchFeed feed) {
  Batch batch;
  gather(dataset, dataset.train, feed.batch({}), batch);
  replica.backward(batch);
  std::array<double, measured_steps> costs{};
  for (double& cost : costs) {
    const double start = cpu_seconds();
    replica.backward(batch);
    cost = cpu_seconds() - start;
  }
  std::sort(costs.begin(), costs.end());
  return costs[costs.size() / 2];
}

}  // namespace syncopate::cli
