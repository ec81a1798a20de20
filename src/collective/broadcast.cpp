#include "collective/broadcast.hpp"

#include <bit>
#include <memory>
#include <vector>

#include "transport/tags.hpp"

namespace syncopate {

void broadcast(Group& group, std::span<std::byte> bytes) {
  const std::uint32_t rank = group.rank().value;
  if (rank > 0) {
    const Rank parent{rank - std::bit_floor(rank)};
    const auto receive =
        group.transport().start_receive(group.node(parent), group.tag(tags::broadcast), bytes);
    group.await(*receive, parent, "broadcast");
  }
  std::vector<std::unique_ptr<Transfer>> sends;
  for (std::uint32_t reach = rank == 0 ? 1 : 2 * std::bit_floor(rank); rank + reach < group.size();
       reach *= 2) {
    sends.push_back(group.transport().start_send(group.node(Rank{rank + reach}),
                                                 group.tag(tags::broadcast), bytes));
  }
  for (const auto& send : sends) {
    send->wait(group.deadline());
  }
}

void broadcast(Group& group, std::span<float> values) {
  broadcast(group, std::as_writable_bytes(values));
}

}  // namespace syncopate
