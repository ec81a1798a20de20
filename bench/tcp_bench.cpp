// What the TCP transport moves between two processes of this machine: the one-way time of small
// messages (half a round trip), and large ones one way and both ways at once.
//
// Prints a table, or with --json the line of results that `bench/README.md` describes.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "transport/steady_time.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace syncopate {
namespace {

constexpr Tag data{100};
constexpr Tag turn{101};

struct Options {
  std::size_t small_bytes = 64;
  std::size_t large_bytes = 44'695'848;  // the parameters of ResNet-18
  std::size_t exchanges = 20'000;        // of small messages
  std::size_t repeats = 40;              // of large ones
  bool json = false;
};

struct Result {
  std::string pattern;
  std::size_t bytes = 0;  // of one message
  std::vector<double> seconds;
  double cpu_seconds = 0;  // of this process, per message

  double quantile(double part) const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted.at(static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1)));
  }
};

/// One of the two processes.
struct Side {
  Transport& transport;
  NodeId peer;
  bool leads;  // measures

  void wait_turn() const { transport.receive(peer, turn, no_deadline); }
  void pass_turn() const { transport.post(peer, turn, {}); }
};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Times `body`, once to warm up and then `repeats` times.
Result measure(const std::string& pattern, std::size_t bytes, std::size_t repeats,
               const std::function<void()>& body) {
  Result result{.pattern = pattern, .bytes = bytes, .seconds = {}};
  body();
  const double cpu_before = cpu_seconds();
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    const TimePoint begin = steady_now();
    body();
    result.seconds.push_back(to_seconds(steady_now() - begin));
  }
  result.cpu_seconds = (cpu_seconds() - cpu_before) / static_cast<double>(repeats);
  return result;
}

/// Half of the time of a message there and one back.
Result ping_pong(const Side& side, const Options& options) {
  std::vector<std::byte> buffer(options.small_bytes);
  const auto exchange = [&] {
    if (side.leads) {
      side.transport.post(side.peer, data, buffer);
    }
    buffer = side.transport.receive(side.peer, data, no_deadline).payload;
    if (!side.leads) {
      side.transport.post(side.peer, data, buffer);
    }
  };
  Result result = measure("ping-pong", options.small_bytes, options.exchanges, exchange);
  for (double& seconds : result.seconds) {
    seconds /= 2;
  }
  result.cpu_seconds /= 2;
  return result;
}

/// From the leading side to the other; the clock stops when the other says that all is there.
Result one_way(const Side& side, const Options& options) {
  std::vector<std::byte> buffer(options.large_bytes, std::byte{1});
  const auto transfer = [&] {
    if (side.leads) {
      side.wait_turn();
      send(side.transport, side.peer, data, buffer, no_deadline);
      side.wait_turn();
    } else {
      const auto receive = side.transport.start_receive(side.peer, data, buffer);
      side.pass_turn();
      receive->wait(no_deadline);
      side.pass_turn();
    }
  };
  return measure("one way", options.large_bytes, options.repeats, transfer);
}

Result both_ways(const Side& side, const Options& options) {
  const std::vector<std::byte> outgoing(options.large_bytes, std::byte{1});
  std::vector<std::byte> incoming(options.large_bytes);
  const auto transfer = [&] {
    const auto receive = side.transport.start_receive(side.peer, data, incoming);
    side.pass_turn();
    side.wait_turn();
    const auto sending = side.transport.start_send(side.peer, data, outgoing);
    receive->wait(no_deadline);
    sending->wait(no_deadline);
  };
  return measure("both ways", options.large_bytes, options.repeats, transfer);
}

std::vector<Result> measure_all(const Side& side, const Options& options) {
  return {ping_pong(side, options), one_way(side, options), both_ways(side, options)};
}

void print_table(const std::vector<Result>& results) {
  fmt::print("{:<10} {:>12} {:>12} {:>12} {:>12} {:>12} {:>10}\n", "tcp", "bytes", "median us",
             "min us", "p90 us", "cpu us", "GB/s");
  for (const Result& result : results) {
    fmt::print("{:<10} {:>12} {:>12.1f} {:>12.1f} {:>12.1f} {:>12.1f} {:>10.2f}\n", result.pattern,
               result.bytes, 1e6 * result.quantile(0.5), 1e6 * result.quantile(0),
               1e6 * result.quantile(0.9), 1e6 * result.cpu_seconds,
               1e-9 * static_cast<double>(result.bytes) / result.quantile(0.5));
  }
}

void print_json(const std::vector<Result>& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const Result& result : results) {
    list.push_back({{"transport", "tcp"},
                    {"algorithm", result.pattern},
                    {"ranks", 2},
                    {"bytes", result.bytes},
                    {"median_seconds", result.quantile(0.5)},
                    {"min_seconds", result.quantile(0)},
                    {"p90_seconds", result.quantile(0.9)},
                    {"cpu_seconds", result.cpu_seconds}});
  }
  std::cout << nlohmann::json{{"results", list}}.dump() << '\n';
}

/// The other process: joins at the address that comes through the pipe.
int follow(int address_pipe, const Options& options) {
  std::array<char, 64> address{};
  if (::read(address_pipe, address.data(), address.size() - 1) <= 0) {
    return 1;
  }
  const auto transport = TcpTransport::join({.hub = address.data(), .token = "bench"});
  transport->post(coordinator_node, turn, {});
  measure_all({*transport, coordinator_node, false}, options);
  transport->close(steady_now() + std::chrono::seconds(10));
  return 0;
}

int lead(int address_pipe, const Options& options) {
  const auto transport = TcpTransport::listen({.token = "bench"});
  const std::string address = transport->address();
  if (::write(address_pipe, address.data(), address.size()) < 0) {
    return 1;
  }
  // The other side's first turn tells that it has joined.
  const NodeId peer = transport->receive(std::nullopt, turn, no_deadline).from;
  const auto results = measure_all({*transport, peer, true}, options);
  options.json ? print_json(results) : print_table(results);
  transport->close(steady_now() + std::chrono::seconds(10));
  return 0;
}

int run(const Options& options) {
  std::array<int, 2> address_pipe{};
  if (::pipe(address_pipe.data()) != 0) {
    return 1;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    return follow(address_pipe[0], options);
  }
  const int status = lead(address_pipe[1], options);
  ::waitpid(child, nullptr, 0);
  return status;
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  syncopate::Options options;
  CLI::App app("Latency and bandwidth of the TCP transport between two processes");
  app.add_option("--small-bytes", options.small_bytes, "size of a small message");
  app.add_option("--large-bytes", options.large_bytes, "size of a large message");
  app.add_option("--exchanges", options.exchanges, "round trips of small messages");
  app.add_option("--repeats", options.repeats, "transfers of large messages");
  app.add_flag("--json", options.json, "print JSON instead of a table");
  CLI11_PARSE(app, argc, argv);
  return syncopate::run(options);
}
