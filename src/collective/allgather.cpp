#include "collective/allgather.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "cluster/member_link.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// As the job numbers them.
RanksMissing missing_ranks(Group& group, const std::vector<std::uint32_t>& ranks, Duration waited) {
  wire::Missing report;
  report.mutable_ranks()->Assign(ranks.begin(), ranks.end());
  report.set_operation("allgather");
  report.set_waited_seconds(to_seconds(waited));
  report.set_usual_seconds(to_seconds(group.waits().median()));
  return {fmt::format("waited {:.1f} s for rank {}", to_seconds(waited), fmt::join(ranks, ", ")),
          report};
}

}  // namespace

void allgather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all) {
  const auto block = [&](Rank rank) { return all.subspan(rank.value * mine.size(), mine.size()); };
  const TimePoint start = group.world().now();
  const TimePoint deadline = group.deadline();
  std::copy(mine.begin(), mine.end(), block(group.rank()).begin());
  for (std::uint32_t step = 1; step < group.size(); ++step) {
    group.transport().post(group.node(group.neighbour(step)), group.tag(tags::allgather),
                           {mine.begin(), mine.end()});
  }
  std::vector<std::uint32_t> missing;
  for (std::uint32_t step = 1; step < group.size(); ++step) {
    const Rank from = group.neighbour(group.size() - step);
    try {
      const auto receive = group.transport().start_receive(group.node(from),
                                                           group.tag(tags::allgather), block(from));
      group.await(*receive, deadline);
    } catch (const TimedOut&) {
      missing.push_back(group.rank_in_job(from).value);
    }
  }
  const Duration waited = group.world().now() - start;
  if (!missing.empty()) {
    throw missing_ranks(group, missing, waited);
  }
  group.waits().observed(waited);
}

void barrier(Group& group) {
  allgather(group, {}, {});
}

}  // namespace syncopate
