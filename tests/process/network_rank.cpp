// One rank that allreduces with ranks on other hosts. It checks the sums and measures the time.
//
//   syncopate_network_rank TRANSPORT INDEX RANKS HUB OWN-ADDRESS BYTES ROUNDS ALGORITHM...
//
// Each round runs every algorithm once, so that other load on the machine affects all algorithms.
// Rank 0 prints one JSON object: for each algorithm, the seconds of its slowest rank.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "cli/bench/nodes.hpp"
#include "cli/bench/timing.hpp"
#include "collective/allreduce.hpp"
#include "collective/basic_collectives.hpp"
#include "transport/shared_memory.hpp"

namespace {

using namespace syncopate;
using namespace syncopate::cli;

struct Orders {
  BenchEndpoint endpoint;
  std::uint32_t index;
  std::size_t values;
  int rounds;
  std::vector<std::string> algorithms;
};

Orders read_orders(const std::vector<std::string>& words) {
  if (words.size() < 8) {
    throw ConfigError("expected TRANSPORT INDEX RANKS HUB OWN-ADDRESS BYTES ROUNDS ALGORITHM...");
  }
  return {.endpoint = {.transport = words[0],
                       .token = "the token of this test",
                       .coordinator = words[3],
                       .address = words[4],
                       .nodes = static_cast<std::uint32_t>(std::stoul(words[2]))},
          .index = static_cast<std::uint32_t>(std::stoul(words[1])),
          .values = std::stoul(words[5]) / sizeof(float),
          .rounds = std::stoi(words[6]),
          .algorithms = {words.begin() + 7, words.end()}};
}

void say(int descriptor, const std::string& text) {
  const std::string line = text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(descriptor, line.data(), line.size());
}

/// Returns whole numbers whose sums a float represents exactly, in any order of additions.
float value_at(std::size_t place, std::uint32_t rank) {
  return static_cast<float>((place % 97 + 1) * (rank + 1));
}

/// Runs one allreduce and returns the seconds that it took on this rank.
/// Errors: InternalError if the sum is wrong.
double timed_sum(Allreduce& allreduce, World& world, Group& group, std::span<float> values) {
  for (std::size_t place = 0; place < values.size(); ++place) {
    values[place] = value_at(place, group.rank().value);
  }
  barrier(group);
  const TimePoint begun = world.now();
  allreduce.reduce(values);
  const double seconds = std::chrono::duration<double>(world.now() - begun).count();
  const std::uint32_t all_ranks = group.size() * (group.size() + 1) / 2;
  for (std::size_t place = 0; place < values.size(); ++place) {
    if (values[place] != value_at(place, all_ranks - 1)) {
      throw InternalError(fmt::format("rank {} has {} at place {}, expected {}", group.rank().value,
                                      values[place], place, value_at(place, all_ranks - 1)));
    }
  }
  return seconds;
}

void take_turns(const Orders& orders, World& world, Group& group) {
  const auto memory = make_values(world.transport().shared_memory(), orders.values);
  const std::span<float> values(memory.get(), orders.values);
  std::map<std::string, std::unique_ptr<Allreduce>> allreduces;
  for (const std::string& name : orders.algorithms) {
    allreduces[name] =
        std::make_unique<Allreduce>(group, Allreduce::Options{.requested = find_reducer(name)});
  }
  std::map<std::string, std::vector<double>> seconds;
  for (int round = 0; round < orders.rounds; ++round) {
    for (const auto& [name, allreduce] : allreduces) {
      seconds[name].push_back(timed_sum(*allreduce, world, group, values));
    }
  }
  nlohmann::ordered_json report;
  for (const auto& [name, mine] : seconds) {
    report[name] = Timings{.seconds = gathered(group, mine)}.slowest();
  }
  if (orders.index == 0) {
    say(STDOUT_FILENO, report.dump());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Orders orders = read_orders({argv + 1, argv + argc});
    take_part(orders.endpoint, orders.index,
              [&](World& world, Group& group) { take_turns(orders, world, group); });
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    say(STDERR_FILENO, error.what());
    return EXIT_FAILURE;
  }
}
