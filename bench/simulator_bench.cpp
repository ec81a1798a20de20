// Measures how many small messages the simulator carries in a second of real time.
//
// Workload: in turn i every node posts a message to the peer i ranks after it and waits for the
// message of the peer i ranks before it. Each message costs the network's events, one wake-up and
// two stack switches. The program reports messages per second of real time, as the median over
// repetitions with a new simulation each, and per second of CPU time, for machines that are busy.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/simulation.hpp"

namespace {

using namespace syncopate;

struct Load {
  std::uint32_t nodes = 64;
  std::uint64_t messages_per_node = 20'000;
  std::size_t bytes = 64;
  std::uint32_t repetitions = 5;
};

/// A rate of messages per second.
struct Rate {
  double real = 0;
  double cpu = 0;
};

constexpr Tag talk{1};

void exchange(World& world, const Load& load) {
  Transport& transport = world.transport();
  const std::uint32_t self = transport.self().value;
  for (std::uint32_t peer = 0; peer < load.nodes; ++peer) {
    transport.introduce(NodeId{peer}, sim::address_of(NodeId{peer}));
  }
  for (std::uint64_t i = 0; i < load.messages_per_node; ++i) {
    const auto distance = static_cast<std::uint32_t>(1 + i % (load.nodes - 1));
    const NodeId to{(self + distance) % load.nodes};
    const NodeId from{(self + load.nodes - distance) % load.nodes};
    transport.post(to, talk, std::vector<std::byte>(load.bytes));
    transport.receive(from, talk, world.now() + std::chrono::seconds(10));
  }
  transport.close(no_deadline);
}

Rate measure(const Load& load) {
  sim::Simulation simulation({});
  for (std::uint32_t node = 0; node < load.nodes; ++node) {
    simulation.add_node("node", [&load](World& world) { exchange(world, load); });
  }
  const std::clock_t cpu_start = std::clock();
  const auto start = std::chrono::steady_clock::now();
  simulation.run();
  const std::chrono::duration<double> real = std::chrono::steady_clock::now() - start;
  const double cpu = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  const auto messages = static_cast<double>(load.nodes * load.messages_per_node);
  return {messages / real.count(), messages / cpu};
}

/// Prints the rates, which are in ascending order.
void report(const Load& load, const std::vector<Rate>& rates, bool json) {
  const Rate median = rates[rates.size() / 2];
  const double least = rates.front().real;
  const double most = rates.back().real;
  if (!json) {
    fmt::print("simulator: {} nodes, {} bytes: {:.0f} messages/s (median of {}, {:.0f} to {:.0f})",
               load.nodes, load.bytes, median.real, rates.size(), least, most);
    fmt::print(", {:.0f} per CPU second\n", median.cpu);
    return;
  }
  const nlohmann::json result{{"benchmark", "simulator"},
                              {"nodes", load.nodes},
                              {"bytes", load.bytes},
                              {"messages", load.nodes * load.messages_per_node},
                              {"median_messages_per_second", median.real},
                              {"min_messages_per_second", least},
                              {"max_messages_per_second", most},
                              {"messages_per_cpu_second", median.cpu}};
  fmt::print("{}\n", result.dump());
}

}  // namespace

int main(int argc, char** argv) {
  Load load;
  bool json = false;
  CLI::App app("Measures the simulator: small messages a second between nodes");
  app.add_option("--nodes", load.nodes, "Nodes that talk")->check(CLI::Range(2U, 4096U));
  app.add_option("--messages", load.messages_per_node, "Messages that each node sends");
  app.add_option("--bytes", load.bytes, "Bytes of a message");
  app.add_option("--repetitions", load.repetitions, "Simulations")->check(CLI::Range(1U, 1000U));
  app.add_flag("--json", json, "Print one line of JSON");
  CLI11_PARSE(app, argc, argv);

  std::vector<Rate> rates;
  for (std::uint32_t i = 0; i < load.repetitions; ++i) {
    rates.push_back(measure(load));
  }
  std::sort(rates.begin(), rates.end(), [](Rate a, Rate b) { return a.real < b.real; });
  report(load, rates, json);
}
