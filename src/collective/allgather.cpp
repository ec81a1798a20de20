#include "collective/allgather.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// One receive a rank, of which some have ended.
class Arrivals {
 public:
  void expect(std::unique_ptr<Transfer> receive, Rank from) {
    open_.push_back({from, std::move(receive)});
  }

  /// Errors: TimedOut, where some have not come by then.
  void wait(TimePoint until) {
    for (; !open_.empty(); open_.pop_front()) {
      open_.front().receive->wait(until);
    }
  }

  /// Whose message has not come by now.
  std::vector<Rank> missing(TimePoint now) {
    std::vector<Rank> ranks;
    std::erase_if(open_, [&](const Arrival& arrival) {
      try {
        arrival.receive->wait(now);
        return true;
      } catch (const TimedOut&) {
        ranks.push_back(arrival.from);
        return false;
      }
    });
    return ranks;
  }

 private:
  struct Arrival {
    Rank from;
    std::unique_ptr<Transfer> receive;
  };
  std::deque<Arrival> open_;
};

}  // namespace

void allgather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all) {
  const auto block = [&](Rank rank) { return all.subspan(rank.value * mine.size(), mine.size()); };
  const TimePoint start = group.world().now();
  std::copy(mine.begin(), mine.end(), block(group.rank()).begin());
  const Tag tag = group.tag(tags::allgather);
  for (std::uint32_t step = 1; step < group.size(); ++step) {
    group.transport().post(group.node(group.neighbour(step)), tag, {mine.begin(), mine.end()});
  }
  Arrivals arrivals;
  for (std::uint32_t step = 1; step < group.size(); ++step) {
    const Rank from = group.neighbour(group.size() - step);
    arrivals.expect(group.transport().start_receive(group.node(from), tag, block(from)), from);
  }
  const auto missing = [&] {
    std::vector<Rank> ranks = arrivals.missing(group.world().now());
    std::ranges::transform(ranks, ranks.begin(),
                           [&](Rank rank) { return group.rank_in_job(rank); });
    return ranks;
  };
  group.await([&](TimePoint until) { arrivals.wait(until); },
              {.operation = "allgather", .missing = missing});
  group.waits().observed(group.world().now() - start);
}

void barrier(Group& group) {
  allgather(group, {}, {});
}

}  // namespace syncopate
