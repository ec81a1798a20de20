#include "checkpoint/worker_states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/errors.hpp"
#include "checkpoint/safetensors.hpp"
#include "runtime/waits.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// Separates, in messages, the name of a state from the name of its slot or counter. Neither
/// contains it.
constexpr char separator = '/';

std::int64_t bits_of(double value) {
  return std::bit_cast<std::int64_t>(value);
}

std::int64_t counter(const OptimizerState& state, const std::string& name) {
  const auto found = state.counters.find(name);
  if (found == state.counters.end()) {
    throw DataError(fmt::format("a worker's state lacks {}; was it written by Syncopate?", name));
  }
  return found->second;
}

[[noreturn]] void throw_impossible(const std::string& name, const std::string& value) {
  throw DataError(fmt::format("a worker's state is damaged: {} is {}", name, value));
}

std::int64_t count(const OptimizerState& state, const std::string& name) {
  const std::int64_t value = counter(state, name);
  if (value < 0) {
    throw_impossible(name, std::to_string(value));
  }
  return value;
}

std::uint32_t small_count(const OptimizerState& state, const std::string& name) {
  const std::int64_t value = count(state, name);
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    throw_impossible(name, std::to_string(value));
  }
  return static_cast<std::uint32_t>(value);
}

/// Durations, speeds and shares.
double real(const OptimizerState& state, const std::string& name) {
  const auto value = std::bit_cast<double>(counter(state, name));
  if (!std::isfinite(value) || value < 0) {
    throw_impossible(name, fmt::format("{}", value));
  }
  return value;
}

void put(OptimizerState& state, const std::string& prefix,
         const wire::PacerMemory::Estimate& estimate) {
  state.counters[prefix + "mean"] = bits_of(estimate.mean());
  state.counters[prefix + "spread"] = bits_of(estimate.spread());
  state.counters[prefix + "last_left_out"] = estimate.last_left_out() ? 1 : 0;
  state.counters[prefix + "recent"] = estimate.recent_size();
  for (int i = 0; i < estimate.recent_size(); ++i) {
    state.counters[fmt::format("{}recent.{}", prefix, i)] = bits_of(estimate.recent(i));
  }
}

wire::PacerMemory::Estimate estimate_in(const OptimizerState& state, const std::string& prefix) {
  wire::PacerMemory::Estimate estimate;
  estimate.set_mean(real(state, prefix + "mean"));
  estimate.set_spread(real(state, prefix + "spread"));
  estimate.set_last_left_out(count(state, prefix + "last_left_out") != 0);
  for (std::int64_t i = 0; i < count(state, prefix + "recent"); ++i) {
    estimate.add_recent(real(state, fmt::format("{}recent.{}", prefix, i)));
  }
  return estimate;
}

std::int64_t number_in(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) {
    throw DataError(fmt::format("a worker's state has \"{}\" where a number belongs", text));
  }
  return value;
}

/// Splits "optimizer/momentum" in two.
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const std::size_t at = name.find(separator);
  if (at == std::string::npos) {
    throw DataError(
        fmt::format("a worker's state has an entry \"{}\" without the name of a state", name));
  }
  return {name.substr(0, at), name.substr(at + 1)};
}

/// The interval of checks whether the coordinator has dropped a worker.
constexpr Duration poll_every = std::chrono::milliseconds(100);

LongWait wait_for(const Member& worker, Duration waited, Duration limit) {
  return {.ranks = {worker.rank},
          .operation = "the states of workers, for a checkpoint",
          .waited = waited,
          .limit = limit};
}

bool is_lost(const MemberLink& link, Rank worker) {
  const std::vector<Rank> lost = link.lost();
  return std::find(lost.begin(), lost.end(), worker) != lost.end();
}

/// Receives the states of a worker; empty if the job has dropped it.
States states_from(World& world, MemberLink& link, const Member& worker, Duration limit,
                   const std::function<void()>& on_loss) {
  const TimePoint begun = world.now();
  TimePoint due = begun + limit / 2;
  while (!is_lost(link, worker.rank)) {
    on_loss();
    std::optional<Message> message;
    try {
      message =
          world.transport().try_receive(worker.node, tags::worker_states, world.now() + poll_every);
    } catch (const PeerLost&) {
      if (world.now() - begun >= limit) {
        throw;
      }
      world.sleep_for(poll_every);  // until the coordinator has decided about the worker
      continue;
    }
    if (message) {
      return in_checkpoint(worker.rank, decode_states(message->payload));
    }
    link.check();
    if (world.now() >= due) {
      due = link.report_wait(wait_for(worker, world.now() - begun, limit)) + world.now();
    }
  }
  return {};
}

}  // namespace

OptimizerState to_state(const LoopState& loop) {
  return {.slots = {},
          .counters = {{"step", static_cast<std::int64_t>(loop.step)},
                       {"batch", static_cast<std::int64_t>(loop.position.batch)},
                       {"taken", static_cast<std::int64_t>(loop.position.taken)},
                       {"speed_share", bits_of(loop.speed_share)},
                       {"training_ns", loop.training.count()}}};
}

std::optional<LoopState> loop_state_in(const States& states) {
  const auto found = states.find(state_of_loop);
  if (found == states.end()) {
    return std::nullopt;
  }
  const OptimizerState& state = found->second;
  return LoopState{.step = static_cast<std::uint64_t>(count(state, "step")),
                   .position = {.batch = static_cast<std::uint64_t>(count(state, "batch")),
                                .taken = static_cast<std::uint64_t>(count(state, "taken"))},
                   .speed_share = real(state, "speed_share"),
                   .training = Duration(count(state, "training_ns"))};
}

OptimizerState to_state(const wire::PacerMemory& memory) {
  OptimizerState state{
      .slots = {},
      .counters = {{"workers", memory.workers_size()}, {"round_time_ns", memory.round_time()}}};
  put(state, "synchronization.", memory.synchronization());
  for (int rank = 0; rank < memory.workers_size(); ++rank) {
    const std::string prefix = fmt::format("{}.", rank);
    state.counters[prefix + "heard"] = memory.workers(rank).heard() ? 1 : 0;
    state.counters[prefix + "step_samples"] = memory.workers(rank).step_samples();
    put(state, prefix, memory.workers(rank).estimate());
  }
  return state;
}

wire::PacerMemory pacer_memory_in(const OptimizerState& state) {
  wire::PacerMemory memory;
  memory.set_round_time(count(state, "round_time_ns"));
  *memory.mutable_synchronization() = estimate_in(state, "synchronization.");
  for (std::int64_t rank = 0; rank < count(state, "workers"); ++rank) {
    const std::string prefix = fmt::format("{}.", rank);
    wire::PacerMemory::Worker& worker = *memory.add_workers();
    worker.set_heard(count(state, prefix + "heard") != 0);
    worker.set_step_samples(small_count(state, prefix + "step_samples"));
    *worker.mutable_estimate() = estimate_in(state, prefix);
  }
  return memory;
}

std::string prefix_of(Rank worker) {
  return fmt::format("worker.{}.", worker.value);
}

States in_checkpoint(Rank worker, States states) {
  States named;
  for (auto& entry : states) {
    named[prefix_of(worker) + entry.first] = std::move(entry.second);
  }
  return named;
}

std::vector<std::byte> encode_states(const States& states) {
  std::vector<NamedTensor> tensors;
  Metadata metadata;
  for (const auto& [name, state] : states) {
    for (const auto& [slot, values] : state.slots) {
      tensors.push_back({fmt::format("{}{}{}", name, separator, slot),
                         {static_cast<std::int64_t>(values.size())},
                         values});
    }
    for (const auto& [key, value] : state.counters) {
      metadata[fmt::format("{}{}{}", name, separator, key)] = std::to_string(value);
    }
  }
  const std::string bytes = encode_safetensors(metadata, tensors);
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

States decode_states(std::span<const std::byte> bytes) {
  const Safetensors file(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                         "the state of a worker");
  States states;
  for (const std::string& name : file.names()) {
    const auto [state, slot] = parts_of(name);
    states[state].slots[slot] = file.values(name);
  }
  for (const auto& [name, text] : file.metadata()) {
    const auto [state, key] = parts_of(name);
    states[state].counters[key] = number_in(text);
  }
  return states;
}

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
