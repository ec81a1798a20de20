#include "collective/basic_collectives.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// The receives of a collective that are under way, one per rank.
class Arrivals {
 public:
  void expect(std::unique_ptr<Transfer> receive, Rank from) {
    open_.push_back({from, std::move(receive)});
  }

  /// Errors: TimedOut if a message has not arrived by `until`.
  void wait(TimePoint until) {
    for (; !open_.empty(); open_.pop_front()) {
      open_.front().receive->wait(until);
    }
  }

  /// The ranks whose message has not arrived by `now`.
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

/// `operation`: the name of the collective in errors.
void gather_on_all(Group& group, std::span<const std::byte> mine, std::span<std::byte> all,
                   const char* operation) {
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
              {.operation = operation, .missing = missing});
  group.waits().observed(group.world().now() - start);
}

}  // namespace

void allgather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all) {
  gather_on_all(group, mine, all, "allgather");
}

void barrier(Group& group) {
  gather_on_all(group, {}, {}, "barrier");
}

void broadcast(Group& group, std::span<std::byte> bytes, Rank root) {
  // Ranks are counted from the root, which is 0.
  const std::uint32_t rank = (group.rank().value + group.size() - root.value) % group.size();
  const auto member = [&](std::uint32_t counted) {
    return Rank{(counted + root.value) % group.size()};
  };
  if (rank > 0) {
    const auto parent_of = [](std::uint32_t counted) { return counted - std::bit_floor(counted); };
    const auto receive = group.transport().start_receive(group.node(member(parent_of(rank))),
                                                         group.tag(tags::broadcast), bytes);
    // Any member on the path from the root to this one may be late.
    const auto missing = [&] {
      std::vector<Rank> ranks;
      for (std::uint32_t from = rank; from > 0;) {
        from = parent_of(from);
        ranks.insert(ranks.begin(), group.rank_in_job(member(from)));
      }
      return ranks;
    };
    group.await([&](TimePoint until) { receive->wait(until); },
                {.operation = "broadcast", .missing = missing});
  }
  std::vector<std::unique_ptr<Transfer>> sends;
  for (std::uint32_t reach = rank == 0 ? 1 : 2 * std::bit_floor(rank); rank + reach < group.size();
       reach *= 2) {
    sends.push_back(group.transport().start_send(group.node(member(rank + reach)),
                                                 group.tag(tags::broadcast), bytes));
  }
  for (const auto& send : sends) {
    send->wait(group.deadline());
  }
}

void broadcast(Group& group, std::span<float> values) {
  broadcast(group, std::as_writable_bytes(values));
}

namespace {

/// The blocks of all ranks, each `bytes` long, in one span.
template <class Byte>
std::vector<std::span<Byte>> blocks_of(std::span<Byte> all, std::size_t bytes,
                                       std::uint32_t ranks) {
  std::vector<std::span<Byte>> blocks;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    blocks.push_back(all.subspan(rank * bytes, bytes));
  }
  return blocks;
}

/// One block for rank `root`, and none for the others.
template <class Byte>
std::vector<std::span<Byte>> only(Rank root, std::span<Byte> block, std::uint32_t ranks) {
  std::vector<std::span<Byte>> blocks(ranks);
  blocks[root.value] = block;
  return blocks;
}

}  // namespace

void exchange(Group& group, const std::vector<std::span<const std::byte>>& to,
              const std::vector<std::span<std::byte>>& from) {
  const std::uint32_t self = group.rank().value;
  if (to.size() != group.size() || from.size() != group.size() ||
      to[self].size() != from[self].size()) {
    throw InternalError("an exchange needs a block to send and a block to receive for each rank");
  }
  const Tag tag = group.tag(tags::parts);
  std::vector<std::pair<Rank, std::unique_ptr<Transfer>>> receives;
  std::vector<std::unique_ptr<Transfer>> sends;
  for (std::uint32_t step = 1; step < group.size(); ++step) {
    const Rank rank = group.neighbour(step);
    if (!from[rank.value].empty()) {
      receives.emplace_back(
          rank, group.transport().start_receive(group.node(rank), tag, from[rank.value]));
    }
  }
  for (std::uint32_t step = 1; step < group.size(); ++step) {
    const Rank rank = group.neighbour(step);
    if (!to[rank.value].empty()) {
      sends.push_back(group.transport().start_send(group.node(rank), tag, to[rank.value]));
    }
  }
  std::ranges::copy(to[self], from[self].begin());
  for (const auto& [rank, receive] : receives) {
    group.await(*receive, rank, "exchange");
  }
  for (const auto& send : sends) {
    send->wait(group.deadline());
  }
}

void gather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all, Rank root) {
  const bool receives = group.rank() == root;
  exchange(group, only(root, mine, group.size()),
           receives ? blocks_of(all, mine.size(), group.size())
                    : std::vector<std::span<std::byte>>(group.size()));
}

void scatter(Group& group, std::span<const std::byte> all, std::span<std::byte> mine, Rank root) {
  const bool sends = group.rank() == root;
  exchange(group,
           sends ? blocks_of(all, mine.size(), group.size())
                 : std::vector<std::span<const std::byte>>(group.size()),
           only(root, mine, group.size()));
}

}  // namespace syncopate
