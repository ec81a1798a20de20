#include "collective/measure_links.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "collective/basic_collectives.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

constexpr std::size_t trials = 5;

/// The measurements of one rank in one trial, in seconds.
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
        host_(group.subgroup(ranks_on(group.hosts(), group.hosts()[group.rank().value]))),
        values_(bytes / sizeof(float)) {
    const std::vector<Rank> leaders = host_leaders(group.hosts());
    const bool leads = std::count(leaders.begin(), leaders.end(), group.rank()) > 0;
    leaders_.emplace(group.subgroup(leads ? leaders : std::vector{group.rank()}));
  }

  Trial run() {
    Trial trial;
    barrier(group_);
    trial.short_within = round_of(host_, 1);
    trial.long_within = round_of(host_, values_);
    barrier(group_);
    trial.short_between = round_of(*leaders_, 1);
    trial.long_between = round_of(*leaders_, values_);
    trial.addition = addition();
    return trial;
  }

 private:
  /// The mean of some rounds in which each rank sends `values` to the next. A single round may seem
  /// to take no time, where the sender is ahead.
  double round_of(Group& ring, std::size_t values) {
    const int rounds = values == 1 ? 8 : 2;
    if (ring.size() == 1) {
      return 0;
    }
    const TimePoint begun = ring.world().now();
    for (int round = 0; round < rounds; ++round) {
      pass_on(ring, values);
    }
    return to_seconds(ring.world().now() - begun) / rounds;
  }

  static void pass_on(Group& ring, std::size_t values) {
    const std::span<float> scratch = ring.scratch(2 * values);
    const Rank left = ring.neighbour(ring.size() - 1);
    const NodeId right = ring.node(ring.neighbour(1));
    const Tag tag = ring.tag(tags::links);
    const auto receive = ring.transport().start_receive(
        ring.node(left), tag, std::as_writable_bytes(scratch.first(values)));
    const auto send = ring.transport().start_send(right, tag, std::as_bytes(scratch.last(values)));
    ring.await(*receive, left, "link measurement");
    send->wait(ring.deadline());
  }

  double addition() {
    const std::span<float> scratch = group_.scratch(2 * values_);
    const TimePoint begun = group_.world().now();
    add(scratch.first(values_), scratch.last(values_));
    return to_seconds(group_.world().now() - begun);
  }

  Group& group_;
  Group host_;
  std::optional<Group> leaders_;  ///< or only this rank, if it is no leader
  std::size_t values_;
};

/// The time of the fastest trial; each is as slow as its slowest rank.
double fastest_trial(const std::vector<Trials>& all, double Trial::*seconds) {
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
  const auto of = [&](double Trial::*seconds) { return fastest_trial(all, seconds); };
  return {.within = link_of(of(&Trial::short_within), of(&Trial::long_within), bytes),
          .between = link_of(of(&Trial::short_between), of(&Trial::long_between), bytes),
          .seconds_per_added_byte = of(&Trial::addition) / static_cast<double>(bytes)};
}

}  // namespace syncopate
