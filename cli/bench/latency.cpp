#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cli/bench/benchmarks.hpp"
#include "cli/bench/nodes.hpp"
#include "cli/bench/timing.hpp"
#include "cli/view/render.hpp"
#include "collective/basic_collectives.hpp"

namespace syncopate::cli {
namespace {

constexpr std::size_t largest_small = 64 * 1024;
constexpr Tag letters = tags::broadcast;

/// One of the two sides; rank 0 leads.
class Side {
 public:
  Side(const BenchCommand& command, Node& node)
      : command_(command), node_(node), peer_(node.all.node(node.all.neighbour(1))) {}

  void run() {
    for (const std::size_t bytes : command_.bytes) {
      outgoing_.assign(bytes, std::byte{1});
      incoming_.assign(bytes, std::byte{});
      if (bytes <= largest_small) {
        back_and_forth();
      } else {
        in_bulk("one way", !leads(), leads());
        in_bulk("both ways", true, true);
      }
    }
  }

 private:
  bool leads() const { return node_.all.rank() == Rank{0}; }
  Transport& transport() { return node_.world.transport(); }

  void back_and_forth() {
    begins("back and forth");
    const auto post = [&] { transport().post(peer_, letters, outgoing_); };
    const auto receive = [&] { transport().receive(peer_, letters, node_.all.deadline()); };
    const Timings timings = time_rounds(node_.all, command_.effort, {.body = [&] {
                                          if (leads()) {
                                            post();
                                          }
                                          receive();
                                          if (!leads()) {
                                            post();
                                          }
                                        }});
    // A round of the leading side is a whole round trip; a round of the other side begins in the
    // middle of one.
    std::vector<double> seconds = timings.seconds.front();
    for (double& each : seconds) {
      each /= 2;
    }
    add_result("back and forth", seconds, timings.cpu_seconds / 2);
  }

  void in_bulk(const std::string& pattern, bool receives, bool sends) {
    begins(pattern);
    std::unique_ptr<Transfer> receive;
    const auto get_ready = [&] {
      if (receives) {
        receive = transport().start_receive(peer_, letters, incoming_);
      }
      barrier(node_.all);
    };
    const auto transfer = [&] {
      std::unique_ptr<Transfer> sending;
      if (sends) {
        sending = transport().start_send(peer_, letters, outgoing_);
      }
      for (Transfer* const each : {receive.get(), sending.get()}) {
        if (each) {
          each->wait(node_.all.deadline());
        }
      }
    };
    const Timings timings =
        time_rounds(node_.all, command_.effort, {.before = get_ready, .body = transfer});
    add_result(pattern, timings.slowest(), timings.cpu_seconds);
  }

  void begins(const std::string& pattern) {
    if (leads()) {
      node_.reporter.begins(fmt::format("messages of {} {} over {}",
                                        bytes_text(static_cast<double>(outgoing_.size())), pattern,
                                        command_.transport));
    }
  }

  void add_result(const std::string& pattern, const std::vector<double>& seconds,
                  double cpu_seconds) {
    if (!leads()) {
      return;
    }
    nlohmann::ordered_json result{
        {"transport", command_.transport}, {"pattern", pattern}, {"bytes", outgoing_.size()}};
    add_times(result, seconds);
    result["cpu_seconds"] = cpu_seconds;
    result["bytes_per_second"] =
        static_cast<double>(outgoing_.size()) / result["median_seconds"].get<double>();
    result["rounds"] = seconds.size();
    node_.reporter.result(result);
  }

  const BenchCommand& command_;
  Node& node_;
  NodeId peer_;
  std::vector<std::byte> outgoing_;
  std::vector<std::byte> incoming_;
};

}  // namespace

int bench_latency(const BenchCommand& command) {
  return run_nodes(command, {"rank 0", "rank 1"}, [&](Node& node) { Side(command, node).run(); });
}

}  // namespace syncopate::cli
