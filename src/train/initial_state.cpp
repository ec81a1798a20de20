#include "train/initial_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/random.hpp"
#include "collective/basic_collectives.hpp"
#include "collective/reducer.hpp"
#include "kernels/reduce.hpp"
#include "scheme/local_rounds.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

void share(Group& group, Replica& replica, ReplicaVector which) {
  broadcast(group, replica.view(which));
  replica.store(which);
}

/// The part of a checkpoint that a worker needs. Rank 0 reads the checkpoint and sends the parts.
std::string bytes_of(Group& group, const TrainConfig& config,
                     const std::filesystem::path& checkpoint) {
  if (group.rank() != Rank{0}) {
    Message message;
    group.await(
        [&](TimePoint until) {
          message = group.transport().receive(group.node(Rank{0}), tags::worker_states, until);
        },
        {.operation = "the checkpoint",
         .missing = [&] { return std::vector{group.rank_in_job(Rank{0})}; }});
    return {reinterpret_cast<const char*>(message.payload.data()), message.payload.size()};
  }
  std::string bytes = read_file(checkpoint);
  const Checkpoint whole(bytes, checkpoint.string(), std::string(config.network->name));
  for (std::uint32_t rank = 1; rank < group.size(); ++rank) {
    const std::string part = whole.without_others(Rank{rank});
    const auto view = std::as_bytes(std::span(part));
    group.transport().post(group.node(Rank{rank}), tags::worker_states, {view.begin(), view.end()});
  }
  return bytes;
}

std::uint64_t seed_of_draw(const TrainConfig& config, Rank rank) {
  return Random(config.seed).fork("initial parameters", rank.value).bits();
}

std::vector<float> drawn(Replica& replica, std::uint64_t seed) {
  replica.initialise(seed);
  const std::span<const float> params = replica.view(ReplicaVector::params);
  return {params.begin(), params.end()};
}

template <class Vector>
auto part_of(Vector& values, const TensorInfo& tensor) {
  return std::span(values).subspan(tensor.offset, values_in(tensor));
}

/// Sets every tensor that is drawn to the sum of all ranks' draws, divided by √P.
void draw_independently(Group& group, Replica& replica, const TrainConfig& config) {
  const std::vector<float> first = drawn(replica, seed_of_draw(config, Rank{0}));
  const std::vector<float> second = drawn(replica, seed_of_draw(config, Rank{1}));
  replica.initialise(seed_of_draw(config, group.rank()));
  const std::span<float> params = replica.view(ReplicaVector::params);
  find_reducer("ring")->make(group, {})->reduce({.values = params});
  for (const TensorInfo& tensor : replica.layout(ReplicaVector::params)) {
    const auto constant = part_of(first, tensor);
    if (std::ranges::equal(constant, part_of(second, tensor))) {
      std::ranges::copy(constant, part_of(params, tensor).begin());
    } else {
      scale(part_of(params, tensor), 1.0F / std::sqrt(static_cast<float>(group.size())));
    }
  }
  replica.store(ReplicaVector::params);
}

}  // namespace

void draw_initial_state(Group& group, Replica& replica, const TrainConfig& config) {
  if (config.init == Init::broadcast) {
    replica.initialise(seed_of_draw(config, Rank{0}));
    share(group, replica, ReplicaVector::params);
  } else {
    draw_independently(group, replica, config);
  }
  share(group, replica, ReplicaVector::buffers);
}

Restored restore_state(Group& group, Replica& replica, const TrainConfig& config,
                       const std::filesystem::path& checkpoint) {
  const Checkpoint whole(bytes_of(group, config, checkpoint), checkpoint.string(),
                         std::string(config.network->name));
  load_checkpoint(whole, replica);
  Restored restored{.progress = whole.progress(),
                    .outer_state = whole.state(LocalRounds::state_of_outer),
                    .own = whole.states_of(group.rank()),
                    .pacer = whole.state(state_of_pacer)};
  if (const auto own = restored.own.find(state_of_optimizer); own != restored.own.end()) {
    replica.load_optimizer_state(own->second);
  }
  if (const auto loop = loop_state_in(restored.own)) {
    restored.progress.step = loop->step;
    restored.progress.training = loop->training;
  }
  return restored;
}

namespace {

/// |own − first| / |first|.
double distance_of(std::span<const float> own, std::span<const float> first) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double apart = double{own[i]} - double{first[i]};
    difference += apart * apart;
    norm += double{first[i]} * double{first[i]};
  }
  return difference > 0 ? std::sqrt(difference / norm) : 0;
}

}  // namespace

void expect_same_model(const Group& workers, Replica& replica) {
  // A group that listens for failures ends the waits of workers that have all finished.
  Group group = workers.duplicate();
  const std::span<const float> own = replica.view(ReplicaVector::params);
  std::vector<float> first(own.begin(), own.end());
  broadcast(group, first);
  const double distance = distance_of(own, first);
  std::vector<double> all(group.size());
  allgather(group, std::as_bytes(std::span(&distance, 1)), std::as_writable_bytes(std::span(all)));
  std::vector<std::size_t> others;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] > most_by_rounding) {
      others.push_back(rank);
    }
  }
  if (!others.empty()) {
    throw ConfigError(fmt::format(
        "the job ends with several models: that of worker {} is not that of worker 0. Programs "
        "have "
        "changed parameters outside of the job's steps, as by the module's own optimizer, or their "
        "optimizers have other learning rates or settings: take all steps by the job, with the "
        "same "
        "settings on all workers",
        fmt::join(others, ", ")));
  }
}

}  // namespace syncopate
