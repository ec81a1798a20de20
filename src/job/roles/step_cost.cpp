#include "job/roles/step_cost.hpp"

#include <algorithm>
#include <array>

#include "cli/cpu_time.hpp"

namespace syncopate::cli {
namespace {

constexpr std::size_t measured_steps = 3;

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
