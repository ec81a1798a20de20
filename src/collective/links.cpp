#include "collective/links.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "collective/allgather.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

constexpr std::size_t trials = 5;

/// What one rank measures in one trial, in seconds.
struct Trial {
  double short_within = 0;
  double long_within = 0;
  double short_between = 0;
  double long_between = 0;
  double addition = 0;
};
using Trials = std::array<Trial, trials>;

class Measurement {
 public:
  Measurement(Group& group, std::size_t bytes)
      : group_(group),
        host_(group.of(ranks_on(group.hosts(), group.hosts()[group.rank().value]))),
        values_(bytes / sizeof(float)) {
    const std::vector<Rank> firsts = first_ranks(group.hosts());
    const bool leads = std::count(firsts.begin(), firsts.end(), group.rank()) > 0;
    firsts_.emplace(group.of(leads ? firsts : std::vector{group.rank()}));
  }

  Trial run() {
    Trial trial;
    barrier(group_);
    trial.short_within = round_of(host_, 1);
    trial.long_within = round_of(host_, values_);
    barrier(group_);
    trial.short_between = round_of(*firsts_, 1);
    trial.long_between = round_of(*firsts_, values_);
    trial.addition = addition();
    return trial;
  }

 private:
  /// The mean of some rounds in which each rank sends `values` to the next. A single one may be over before
  /// it began, where the sender is ahead.
  double round_of(Group& circle, std::size_t values) {
    const int rounds = values == 1 ? 8 : 2;
    if (circle.size() == 1) {
      return 0;
    }
    const TimePoint begun = circle.world().now();
    for (int round = 0; round < rounds; ++round) {
      pass_on(circle, values);
    }
    return to_seconds(circle.world().now() - begun) / rounds;
  }

  static void pass_on(Group& circle, std::size_t values) {
    const std::span<float> scratch = circle.scratch(2 * values);
    const Rank left = circle.neighbour(circle.size() - 1);
    const NodeId right = circle.node(circle.neighbour(1));
    const Tag tag = circle.tag(tags::links);
    const auto receive = circle.transport().start_receive(
        circle.node(left), tag, std::as_writable_bytes(scratch.first(values)));
    const auto send =
        circle.transport().start_send(right, tag, std::as_bytes(scratch.last(values)));
    circle.await(*receive, left, "measuring of links");
    send->wait(circle.deadline());
  }

  double addition() {
    const std::span<float> scratch = group_.scratch(2 * values_);
    const TimePoint begun = group_.world().now();
    add(scratch.first(values_), scratch.last(values_));
    return to_seconds(group_.world().now() - begun);
  }

  Group& group_;
  Group host_;
  std::optional<Group> firsts_;  ///< of the hosts; this rank alone, where it is none
  std::size_t values_;
};

/// The fastest trial, each as slow as its slowest rank.
double agreed(const std::vector<Trials>& all, double Trial::*seconds) {
  double fastest = 0;
  for (std::size_t trial = 0; trial < trials; ++trial) {
    double slowest = 0;
    for (const Trials& rank : all) {
      slowest = std::max(slowest, rank[trial].*seconds);
    }
    fastest = trial == 0 ? slowest : std::min(fastest, slowest);
  }
  return fastest;
}

/// α and β from the times of a message of one value and of one of `bytes`.
Link link_of(double one_value, double long_message, std::size_t bytes) {
  const double more = static_cast<double>(bytes - sizeof(float));
  const double slope = more > 0 ? std::max(0.0, long_message - one_value) / more : 0;
  return {.latency = one_value, .seconds_per_byte = slope};
}

}  // namespace

Links measure_links(Group& group, std::size_t bytes) {
  Measurement measurement(group, bytes);
  Trials mine;
  std::generate(mine.begin(), mine.end(), [&] { return measurement.run(); });
  std::vector<Trials> all(group.size());
  allgather(group, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  const auto of = [&](double Trial::*seconds) { return agreed(all, seconds); };
  return {.within = link_of(of(&Trial::short_within), of(&Trial::long_within), bytes),
          .between = link_of(of(&Trial::short_between), of(&Trial::long_between), bytes),
          .seconds_per_added_byte = of(&Trial::addition) / static_cast<double>(bytes)};
}

}  // namespace syncopate
