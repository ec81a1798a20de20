// What an exchange with the parameter server takes a worker: it pushes a gradient as long as
// ResNet-18 and pulls the parameters, over the tcp transport, with servers and workers as processes.
//
// Prints a table, or with --json the line of results that `bench/README.md` describes.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "cluster/coordinator.hpp"
#include "cluster/member_link.hpp"
#include "cluster/real_world.hpp"
#include "server/parameter_server.hpp"
#include "server/server_client.hpp"
#include "server/shard_ranges.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace syncopate {
namespace {

struct Options {
  std::uint32_t servers = 1;
  std::uint32_t workers = 2;
  std::size_t values = 11'175'370;  // the parameters of ResNet-18
  std::size_t rounds = 40;          // of each worker, after a few to warm up
  bool json = false;
};

constexpr std::size_t warm_up = 5;
constexpr const char* token = "bench";

/// Nobody watches a benchmark's job.
class NoObserver : public JobObserver {
 public:
  std::optional<std::string> objection(const std::map<NodeId, wire::Join>&) override { return {}; }
  void refused(const std::string&) override {}
  void awaiting(const std::string&) override {}
  void view_installed(const View&) override {}
  void heard(const Member&, const wire::Heartbeat&) override {}
  void evaluated(const wire::Evaluation&) override {}
  void checkpoint_written(const wire::Checkpoint&) override {}
  void left(const Member&, const wire::Leave&) override {}
  void dropped(const Member&, const std::string&) override {}
  void paced(const PacerState&) override {}
  std::optional<std::string> reason_to_stop() override { return {}; }
};

void serve(World& world, const View& view, Rank shard, const Options& options) {
  const std::size_t values = range_of_shard(options.values, shard.value, options.servers).count;
  ShardStore store({.params = values,
                    .workers = options.workers,
                    .rule = {.name = "sgd"},
                    .learning_rate = [](std::uint64_t) { return 1e-6; }});
  const auto consistency = make_consistency(store, {});
  ParameterServer server(
      world, store, *consistency,
      {.workers = view.nodes(Role::worker), .servers = view.nodes(Role::server)});
  while (!server.deserted()) {
    server.serve(world.now() + std::chrono::milliseconds(50));
  }
}

/// Writes the seconds of each round to `results`.
void work(World& world, MemberLink& link, const Options& options, int results) {
  std::vector<float> gradient(options.values, 1e-3F);
  std::vector<float> params(options.values);
  ServerClient client(world, {.servers = link.view().nodes(Role::server)});
  std::vector<double> seconds;
  link.barrier();
  for (std::uint64_t round = 1; round <= warm_up + options.rounds; ++round) {
    const TimePoint begun = world.now();
    client.work({.push = gradient, .pull = params, .facts = {.step = round, .samples = 1}});
    if (round > warm_up) {
      seconds.push_back(to_seconds(world.now() - begun));
    }
  }
  client.leave();
  if (::write(results, seconds.data(), seconds.size() * sizeof(double)) < 0) {
    throw DataError("the results of a worker cannot be handed over");
  }
}

/// The life of a server or a worker, as a process of its own.
int member(wire::Role role, std::uint32_t index, const std::string& hub, const Options& options,
           int results) {
  RealWorld world(TcpTransport::join({.hub = hub, .token = token}));
  wire::Join join;
  join.set_role(role);
  join.set_index(index);
  join.set_host("here");
  MemberLink link(world, {.join = join});
  const View view = link.join();
  if (role == wire::ROLE_SERVER) {
    serve(world, view, Rank{index}, options);
  } else {
    work(world, link, options, results);
  }
  link.leave({});
  return 0;
}

struct Result {
  std::vector<double> seconds;  ///< of all rounds of all workers, in ascending order
  double cpu_seconds = 0;       ///< of all processes, per round of a worker

  double quantile(double part) const {
    return seconds.at(static_cast<std::size_t>(part * static_cast<double>(seconds.size() - 1)));
  }
};

void print(const Result& result, const Options& options) {
  const std::size_t bytes = options.values * sizeof(float);
  if (options.json) {
    const nlohmann::json one{{"transport", "tcp"},
                             {"algorithm", "push-pull"},
                             {"servers", options.servers},
                             {"workers", options.workers},
                             {"bytes", bytes},
                             {"median_seconds", result.quantile(0.5)},
                             {"min_seconds", result.quantile(0)},
                             {"p90_seconds", result.quantile(0.9)},
                             {"cpu_seconds", result.cpu_seconds}};
    std::cout << nlohmann::json{{"results", {one}}}.dump() << '\n';
    return;
  }
  fmt::print(
      "{} servers, {} workers, {} bytes: median {:.1f} ms, min {:.1f} ms, p90 {:.1f} ms, "
      "CPU {:.1f} ms a round\n",
      options.servers, options.workers, bytes, 1e3 * result.quantile(0.5), 1e3 * result.quantile(0),
      1e3 * result.quantile(0.9), 1e3 * result.cpu_seconds);
}

/// Tells its address through the pipe.
int coordinate(int address_pipe, const Options& options) {
  auto transport = TcpTransport::listen({.token = token});
  const std::string hub = transport->address();
  if (::write(address_pipe, hub.data(), hub.size()) < 0) {
    return 1;
  }
  RealWorld world(std::move(transport));
  NoObserver observer;
  Coordinator(
      world, observer,
      {.membership = {.workers = options.workers, .servers = options.servers, .evaluators = 0}})
      .run();
  return 0;
}

int run(const Options& options) {
  std::array<int, 2> results{};
  std::array<int, 2> address{};
  if (::pipe(results.data()) != 0 || ::pipe(address.data()) != 0) {
    return 1;
  }
  // The coordinator's transport starts a thread, so it is made in a process of its own, too.
  std::vector<pid_t> children;
  const auto is_new_child = [&] {
    children.push_back(::fork());
    return children.back() == 0;
  };
  if (is_new_child()) {
    return coordinate(address[1], options);
  }
  std::array<char, 64> hub{};
  if (::read(address[0], hub.data(), hub.size() - 1) <= 0) {
    return 1;
  }
  for (std::uint32_t shard = 0; shard < options.servers; ++shard) {
    if (is_new_child()) {
      return member(wire::ROLE_SERVER, shard, hub.data(), options, results[1]);
    }
  }
  for (std::uint32_t rank = 0; rank < options.workers; ++rank) {
    if (is_new_child()) {
      return member(wire::ROLE_WORKER, rank, hub.data(), options, results[1]);
    }
  }
  ::close(results[1]);
  Result result;
  double seconds = 0;
  while (::read(results[0], &seconds, sizeof seconds) == sizeof seconds) {
    result.seconds.push_back(seconds);
  }
  bool failed = false;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failed |= status != 0;
  }
  if (failed || result.seconds.size() != options.rounds * options.workers) {
    fmt::print(stderr, "a process of the benchmark failed\n");
    return 1;
  }
  std::sort(result.seconds.begin(), result.seconds.end());
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  result.cpu_seconds = cpu / static_cast<double>((options.rounds + warm_up) * options.workers);
  print(result, options);
  return 0;
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  syncopate::Options options;
  CLI::App app("Push and pull through the parameter server, over the tcp transport.");
  app.add_option("--servers", options.servers, "processes that hold a shard each")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--workers", options.workers, "processes that push and pull")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--values", options.values, "float32 values of a gradient")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "exchanges of each worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--json", options.json, "one line of JSON instead of a table");
  CLI11_PARSE(app, argc, argv);
  return syncopate::run(options);
}
