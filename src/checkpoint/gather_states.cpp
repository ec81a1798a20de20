#include "checkpoint/gather_states.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/waits.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// How long the coordinator's word that a worker is dropped goes unnoticed at most.
constexpr Duration glance = std::chrono::milliseconds(100);

[[noreturn]] void throw_missing(const Member& worker, Duration waited) {
  throw RanksMissing(fmt::format("{} did not send its state for a checkpoint within {:.1f} s",
                                 worker.to_string(), to_seconds(waited)),
                     {.ranks = {worker.rank},
                      .operation = "the states of workers, for a checkpoint",
                      .waited = waited});
}

bool is_lost(const MemberLink& link, Rank worker) {
  const std::vector<Rank> lost = link.lost();
  return std::find(lost.begin(), lost.end(), worker) != lost.end();
}

/// Empty for a worker that the job has dropped.
States states_from(World& world, MemberLink& link, const Member& worker, Duration limit,
                   const std::function<void()>& on_loss) {
  const TimePoint begun = world.now();
  while (!is_lost(link, worker.rank)) {
    on_loss();
    try {
      const Message message =
          world.transport().receive(worker.node, tags::worker_states, world.now() + glance);
      return in_checkpoint(worker.rank, decode_states(message.payload));
    } catch (const TimedOut&) {
      if (world.now() - begun >= limit) {
        throw_missing(worker, world.now() - begun);
      }
    } catch (const PeerLost&) {
      if (world.now() - begun >= limit) {
        throw;
      }
      world.sleep_for(glance);  // the coordinator soon says what becomes of it
    }
  }
  return {};
}

}  // namespace

void send_states(World& world, const View& view, const States& states) {
  const Member* const leader = view.find(Role::worker, Rank{0});
  world.transport().post(leader->node, tags::worker_states, encode_states(states));
}

States gather_states(World& world, MemberLink& link, Duration limit,
                     const std::function<void()>& on_loss) {
  States all;
  for (const Member& worker : link.view().workers()) {
    if (worker.node != world.transport().self()) {
      all.merge(states_from(world, link, worker, limit, on_loss));
    }
  }
  return all;
}

}  // namespace syncopate
