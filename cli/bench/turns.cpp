#include "cli/bench/turns.hpp"

#include "cli/bench/report.hpp"
#include "cli/bench/timing.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::cli {
namespace {

void round_of(Case& each) {
  each.pass();  // what took its turn before has the cache
  const TimePoint begun = steady_now();
  for (int i = 0; i < each.passes; ++i) {
    each.pass();
  }
  each.seconds.push_back(to_seconds(steady_now() - begun) / each.passes);
}

}  // namespace

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
