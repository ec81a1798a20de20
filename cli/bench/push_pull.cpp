#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "cli/bench/benchmarks.hpp"
#include "cli/bench/nodes.hpp"
#include "cli/bench/timing.hpp"
#include "cli/view/render.hpp"
#include "collective/basic_collectives.hpp"
#include "job/launch/environment.hpp"
#include "optim/rule_state.hpp"
#include "server/parameter_server.hpp"
#include "server/server_client.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate::cli {
namespace {

/// The workers come first, then the servers: the first worker reports the results.
struct Cast {
  std::vector<NodeId> workers;
  std::vector<NodeId> servers;

  Cast(const BenchCommand& command, const Group& all) {
    for (std::uint32_t index = 0; index < all.size(); ++index) {
      (index < command.workers ? workers : servers).push_back(all.node(Rank{index}));
    }
  }
};

/// Serves until all workers have left. Returns the CPU seconds that this took.
double serve(const BenchCommand& command, Node& node, const Cast& cast, std::size_t values) {
  const std::uint32_t shard = node.all.rank().value - command.workers;
  ShardStore store({.params = range_of_shard(values, shard, command.servers).count,
                    .workers = command.workers,
                    .rule = {.name = "sgd"},
                    .learning_rate = [](std::uint64_t) { return 1e-6; },
                    .threads = default_thread_count()});
  const auto consistency = make_consistency(store, {});
  ParameterServer server(node.world, store, *consistency,
                         {.workers = cast.workers, .servers = cast.servers});
  barrier(node.all);
  const double cpu_before = cpu_seconds();
  while (!server.all_gone()) {
    server.serve(node.world.now() + std::chrono::milliseconds(50));
  }
  return cpu_seconds() - cpu_before;
}

Timings work(const BenchCommand& command, Node& node, const Cast& cast, std::size_t values) {
  SharedMemory* const memory = node.world.transport().shared_memory();
  const std::shared_ptr<float> pushed = make_values(memory, values);
  const std::shared_ptr<float> pulled = make_values(memory, values);
  const std::span<float> gradient(pushed.get(), values);
  const std::span<float> params(pulled.get(), values);
  std::fill(gradient.begin(), gradient.end(), 1e-3F);
  Group workers(node.world, {.members = cast.workers, .self = node.all.rank()});
  ServerClient client(node.world, {.servers = cast.servers});
  std::uint64_t step = 0;
  barrier(node.all);
  const Timings timings = time_rounds(
      workers, command.effort, {.body = [&] {
        client.work({.push = gradient, .pull = params, .facts = {.step = ++step, .samples = 1}});
      }});
  client.leave();
  return timings;
}

nlohmann::ordered_json figures(const BenchCommand& command, std::size_t bytes,
                               const Timings& timings) {
  std::vector<double> seconds;
  for (const auto& of_worker : timings.seconds) {
    seconds.insert(seconds.end(), of_worker.begin(), of_worker.end());
  }
  nlohmann::ordered_json result{{"transport", command.transport},
                                {"algorithm", "push-pull"},
                                {"servers", command.servers},
                                {"workers", command.workers},
                                {"bytes", bytes}};
  add_times(result, seconds);
  result["cpu_seconds"] = timings.cpu_seconds / command.workers;
  result["rounds"] = timings.seconds.front().size();
  return result;
}

/// Measures one size. Every node calls it.
void exchange(const BenchCommand& command, Node& node, std::size_t bytes) {
  const bool reports = node.all.rank() == Rank{0};
  if (reports) {
    node.reporter.begins(fmt::format("push and pull of {} over {}, {} workers, {} servers",
                                     bytes_text(static_cast<double>(bytes)), command.transport,
                                     command.workers, command.servers));
  }
  const Cast cast(command, node.all);
  const std::size_t values = bytes / sizeof(float);
  if (node.all.rank().value >= command.workers) {
    gathered(node.all, {serve(command, node, cast, values)});
    return;
  }
  Timings timings = work(command, node, cast, values);
  for (const auto& of_node : gathered(node.all, {0.0})) {
    timings.cpu_seconds += of_node.front() / static_cast<double>(timings.rounds_in_all);
  }
  if (reports) {
    node.reporter.result(figures(command, bytes, timings));
  }
}

}  // namespace

int bench_push_pull(const BenchCommand& command) {
  std::vector<std::string> names;
  for (std::uint32_t rank = 0; rank < command.workers; ++rank) {
    names.push_back(fmt::format("worker {}", rank));
  }
  for (std::uint32_t shard = 0; shard < command.servers; ++shard) {
    names.push_back(fmt::format("server {}", shard));
  }
  return run_nodes(command, names, [&](Node& node) {
    for (const std::size_t bytes : command.bytes) {
      exchange(command, node, bytes);
    }
  });
}

}  // namespace syncopate::cli
