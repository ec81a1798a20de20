#include "collective/exchange.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/errors.hpp"
#include "transport/tags.hpp"

namespace syncopate {
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
