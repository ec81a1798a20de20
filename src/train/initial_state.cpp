#include "train/initial_state.hpp"

#include <array>
#include <cmath>
#include <string>

#include "base/file.hpp"
#include "base/random.hpp"
#include "collective/broadcast.hpp"
#include "collective/reduce.hpp"
#include "collective/ring.hpp"
#include "scheme/local_rounds.hpp"

namespace syncopate {
namespace {

void share(Group& group, Replica& replica, Part part) {
  broadcast(group, replica.view(part));
  replica.store(part);
}

std::uint64_t seed_of_draw(const TrainConfig& config, Rank rank) {
  return Random(config.seed).fork("initial parameters", rank.value).bits();
}

}  // namespace

void draw_initial_state(Group& group, Replica& replica, const TrainConfig& config) {
  if (config.init == "broadcast") {
    replica.initialise(seed_of_draw(config, Rank{0}));
    share(group, replica, Part::params);
  } else {
    replica.initialise(seed_of_draw(config, group.rank()));
    const std::span<float> params = replica.view(Part::params);
    ring_allreduce(group, params);
    scale(params, 1.0F / std::sqrt(static_cast<float>(group.size())));
    replica.store(Part::params);
  }
  share(group, replica, Part::buffers);
}

Restored restore_state(Group& group, Replica& replica, const TrainConfig& config,
                       const std::filesystem::path& checkpoint) {
  std::string bytes;
  if (group.rank() == Rank{0}) {
    bytes = read_file(checkpoint);
  }
  std::array<std::uint64_t, 1> length{bytes.size()};
  broadcast(group, std::as_writable_bytes(std::span(length)));
  bytes.resize(length[0]);
  broadcast(group, std::as_writable_bytes(std::span(bytes)));
  const Checkpoint whole(std::move(bytes), checkpoint.string(), config.network);
  load_checkpoint(whole, replica);
  return {.progress = whole.progress(), .outer_state = whole.state(LocalRounds::state_of_outer)};
}

}  // namespace syncopate
