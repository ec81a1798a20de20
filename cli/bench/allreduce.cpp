#include "collective/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/errors.hpp"
#include "cli/bench/benchmarks.hpp"
#include "cli/bench/nodes.hpp"
#include "cli/bench/timing.hpp"
#include "cli/view/render.hpp"
#include "collective/basic_collectives.hpp"
#include "collective/shared_allreduce.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate::cli {
namespace {

using Sum = std::function<void(std::span<float>)>;

/// `reducer`: one of `reducer_names`.
Sum make_sum(const std::string& reducer, Group& group) {
  const auto allreduce =
      std::make_shared<Allreduce>(group, Allreduce::Options{.requested = find_reducer(reducer)});
  return [allreduce](std::span<float> values) { allreduce->reduce(values); };
}

/// Starts all ranks at the same moment, as far as a barrier of the transport can.
std::function<void()> make_start(Group& group) {
  if (std::shared_ptr<SharedAllreduce> shared = SharedAllreduce::make(group)) {
    return [shared] { shared->barrier(); };
  }
  return [&group] { barrier(group); };
}

/// The value of rank r at index i is (r + 1) · pattern(i), so that the sum over P ranks is P (P +
/// 1) / 2 times the pattern. All of these are whole numbers that a float represents exactly.
float pattern(std::size_t index) {
  return static_cast<float>(index % 97 + 1);
}

void check_sum(const Sum& sum, Group& group, std::span<float> values, const std::string& what) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(group.rank().value + 1) * pattern(i);
  }
  sum(values);
  const std::uint32_t all_ranks = group.size() * (group.size() + 1) / 2;
  const auto factor = static_cast<float>(all_ranks);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != factor * pattern(i)) {
      throw InternalError(fmt::format("{}: the sum of rank {} has {} at index {}, expected {}",
                                      what, group.rank().value, values[i], i, factor * pattern(i)));
    }
  }
}

class AllreduceRank {
 public:
  AllreduceRank(const BenchCommand& command, Node& node)
      : command_(command), node_(node), start_(make_start(node.all)) {
    const auto most = *std::max_element(command.bytes.begin(), command.bytes.end());
    memory_ = make_values(node.world.transport().shared_memory(), most / sizeof(float));
  }

  void run() {
    for (const std::string& reducer : command_.reducers) {
      const Sum sum = make_sum(reducer, node_.all);
      for (const std::size_t bytes : command_.bytes) {
        measure(reducer, sum, bytes);
      }
    }
  }

 private:
  void measure(const std::string& reducer, const Sum& sum, std::size_t bytes) {
    const bool reports = node_.all.rank() == Rank{0};
    const std::string what = fmt::format("allreduce of {} by {} over {}, {} ranks",
                                         bytes_text(static_cast<double>(bytes)), reducer,
                                         command_.transport, command_.ranks);
    if (reports) {
      node_.reporter.begins(what);
    }
    const std::span<float> values(memory_.get(), bytes / sizeof(float));
    check_sum(sum, node_.all, values, what);
    // The sum of zeros stays zero over any number of rounds.
    std::fill(values.begin(), values.end(), 0.0F);
    const Timings timings =
        time_rounds(node_.all, command_.effort, {.before = start_, .body = [&] { sum(values); }});
    if (reports) {
      node_.reporter.result(figures(reducer, bytes, timings));
    }
  }

  nlohmann::ordered_json figures(const std::string& reducer, std::size_t bytes,
                                 const Timings& timings) const {
    nlohmann::ordered_json result{{"transport", command_.transport},
                                  {"algorithm", reducer},
                                  {"ranks", command_.ranks},
                                  {"bytes", bytes}};
    const auto seconds = timings.slowest();
    add_times(result, seconds);
    result["cpu_seconds"] = timings.cpu_seconds;
    result["rounds"] = seconds.size();
    return result;
  }

  const BenchCommand& command_;
  Node& node_;
  const std::function<void()> start_;
  std::shared_ptr<float> memory_;
};

void check(const BenchCommand& command) {
  for (const std::string& name : command.reducers) {
    if (const ReducerSpec* const reducer = find_reducer(name)) {
      check_request(*reducer, command.ranks, command.transport);
    }
  }
}

}  // namespace

int bench_allreduce(const BenchCommand& command) {
  check(command);
  std::vector<std::string> names;
  for (std::uint32_t rank = 0; rank < command.ranks; ++rank) {
    names.push_back(fmt::format("rank {}", rank));
  }
  return run_nodes(command, names, [&](Node& node) { AllreduceRank(command, node).run(); });
}

}  // namespace syncopate::cli
