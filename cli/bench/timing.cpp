#include "cli/bench/timing.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "cli/bench/bench_report.hpp"
#include "collective/basic_collectives.hpp"
#include "job/launch/environment.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::cli {
namespace {

constexpr double share_to_warm_up = 0.1;
constexpr std::uint64_t most_rounds = 100'000;

/// The times of each rank.
std::vector<double> run(World& world, const TimedRound& round, std::uint64_t rounds) {
  std::vector<double> seconds;
  seconds.reserve(rounds);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    if (round.before) {
      round.before();
    }
    const TimePoint begun = world.now();
    round.body();
    seconds.push_back(to_seconds(world.now() - begun));
  }
  return seconds;
}

std::uint64_t as_rank_0_has_it(Group& group, std::uint64_t number) {
  broadcast(group, std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

struct WarmedUp {
  std::uint64_t rounds = 0;  ///< done
  std::uint64_t to_do = 0;
};

/// Runs portions of rounds, each twice as long as the last, until a portion is long enough to
/// measure a warm round.
WarmedUp warm_up(Group& group, const Effort& effort, const TimedRound& round) {
  WarmedUp done;
  for (std::uint64_t portion = 1; done.to_do == 0; portion *= 2) {
    const TimePoint begun = group.world().now();
    run(group.world(), round, portion);
    const double elapsed = to_seconds(group.world().now() - begun);
    done.rounds += portion;
    const bool enough = elapsed >= share_to_warm_up * effort.seconds || portion >= most_rounds;
    const double each = elapsed / static_cast<double>(portion);
    done.to_do = as_rank_0_has_it(group, enough ? rounds_to_fill(effort, each) : 0);
  }
  return done;
}

void round_of(Case& each) {
  each.pass();  // refills the cache after the previous case
  const TimePoint begun = steady_now();
  for (int i = 0; i < each.passes; ++i) {
    each.pass();
  }
  each.seconds.push_back(to_seconds(steady_now() - begun) / each.passes);
}

}  // namespace

std::vector<double> Timings::slowest() const {
  std::vector<double> most = seconds.front();
  for (const auto& of_rank : seconds) {
    std::transform(most.begin(), most.end(), of_rank.begin(), most.begin(),
                   [](double a, double b) { return std::max(a, b); });
  }
  return most;
}

std::uint64_t rounds_to_fill(const Effort& effort, double seconds) {
  const double filling = std::ceil(effort.seconds / std::max(seconds, 1e-9));
  const auto bounded = std::clamp(filling, static_cast<double>(fewest_rounds), double{most_rounds});
  return effort.rounds.value_or(static_cast<std::uint64_t>(bounded));
}

std::vector<std::vector<double>> gathered(Group& group, const std::vector<double>& mine) {
  std::vector<double> all(mine.size() * group.size());
  allgather(group, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<std::vector<double>> by_rank;
  for (auto begin = all.begin(); begin != all.end();
       begin += static_cast<std::ptrdiff_t>(mine.size())) {
    by_rank.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(mine.size()));
  }
  return by_rank;
}

Timings time_rounds(Group& group, const Effort& effort, const TimedRound& round) {
  const WarmedUp warm = warm_up(group, effort, round);
  const double cpu_before = cpu_seconds();
  Timings timings{.seconds = {}, .rounds_in_all = warm.rounds + warm.to_do};
  const auto own = run(group.world(), round, warm.to_do);
  const double cpu = cpu_seconds() - cpu_before;
  timings.seconds = gathered(group, own);
  for (const auto& of_rank : gathered(group, {cpu})) {
    timings.cpu_seconds += of_rank.front() / static_cast<double>(warm.to_do);
  }
  return timings;
}

void take_turns(std::vector<Case>& cases, const Effort& effort) {
  const TimePoint begun = steady_now();
  const double all_seconds = effort.seconds * static_cast<double>(cases.size());
  const auto goes_on = [&](std::uint64_t done) {
    return effort.rounds ? done < *effort.rounds
                         : done < fewest_rounds || to_seconds(steady_now() - begun) < all_seconds;
  };
  for (std::uint64_t done = 0; goes_on(done); ++done) {
    for (Case& each : cases) {
      round_of(each);
    }
  }
}

nlohmann::ordered_json figures(const Case& done) {
  nlohmann::ordered_json result = done.names;
  result["bytes"] = done.bytes;
  add_times(result, done.seconds);
  result["bytes_per_second"] =
      static_cast<double>(done.bytes) / result["median_seconds"].get<double>();
  result["rounds"] = done.seconds.size();
  return result;
}

}  // namespace syncopate::cli
