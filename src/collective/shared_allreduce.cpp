#include "collective/shared_allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {

const ReducerSpec& shm_reducer();

namespace {

/// Ranks exchange these before the first round.
struct SetupInfo {
  std::uint64_t offset = 0;  ///< of the rank's control block in its shared memory
  std::uint64_t ready = 0;   ///< 1 as long as this rank can use shared memory
};

std::vector<SetupInfo> exchange(Group& group, const SetupInfo& mine) {
  std::vector<SetupInfo> all(group.size());
  allgather(group, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

bool all_ready(const std::vector<SetupInfo>& all) {
  return std::all_of(all.begin(), all.end(), [](const SetupInfo& info) { return info.ready != 0; });
}

/// Allocates memory that other nodes may read after this one has ended; empty if there is none.
std::span<std::byte> control_block_in(SharedMemory* memory, std::size_t bytes) {
  try {
    return memory == nullptr ? std::span<std::byte>() : memory->allocate_for_good(bytes);
  } catch (const DataError&) {
    return {};
  }
}

/// A part of `count` values.
struct Slice {
  std::size_t begin;
  std::size_t count;

  template <class Value>
  std::span<Value> of(std::span<Value> values) const {
    return values.subspan(begin, count);
  }
};

/// Slices begin at whole lines of the cache, so that no two ranks write to the same one.
Slice slice_of(std::uint32_t rank, std::size_t count, std::uint32_t ranks) {
  constexpr std::size_t line = 16;
  const auto edge = [&](std::size_t r) {
    return r == ranks ? count : count / line * r / ranks * line;
  };
  return {edge(rank), edge(rank + 1) - edge(rank)};
}

void copy(std::span<const float> from, std::span<float> to) {
  if (from.data() != to.data()) {
    std::memcpy(to.data(), from.data(), from.size_bytes());
  }
}

}  // namespace

std::unique_ptr<SharedAllreduce> SharedAllreduce::make(Group& group) {
  SharedMemory* const memory = group.transport().shared_memory();
  const std::span<std::byte> mine = control_block_in(memory, sizeof(ControlBlock));
  SetupInfo info{.ready = mine.empty() ? 0U : 1U};
  if (!mine.empty()) {
    info.offset = *memory->offset_of(mine);
  }
  const std::vector<SetupInfo> all = exchange(group, info);
  info.ready = all_ready(all) ? 1 : 0;
  std::vector<ControlBlock*> blocks;
  for (std::uint32_t rank = 0; info.ready != 0 && rank < group.size(); ++rank) {
    const NodeId node = group.node(Rank{rank});
    if (!memory->reaches(node)) {
      info.ready = 0;
    } else {
      std::byte* const block = memory->at(node, all[rank].offset, sizeof(ControlBlock)).data();
      blocks.push_back(std::launder(reinterpret_cast<ControlBlock*>(block)));
    }
  }
  if (!all_ready(exchange(group, info))) {
    return nullptr;
  }
  return std::make_unique<SharedAllreduce>(Made{}, group, std::move(blocks));
}

SharedAllreduce::SharedAllreduce(Made, Group& group, std::vector<ControlBlock*> blocks)
    : group_(group),
      memory_(*group.transport().shared_memory()),
      blocks_(std::move(blocks)),
      reduced_(blocks_.size(), 0) {}

void SharedAllreduce::reduce(const Contribution& mine) {
  const std::span<float> values = mine.values.floats();
  ++round_;
  try {
    if (values.size() <= short_values) {
      reduce_short(values, mine.factor);
    } else {
      reduce_long(values, mine.factor);
    }
  } catch (...) {
    own().failed.store(round_, std::memory_order_seq_cst);
    throw;
  }
}

void SharedAllreduce::arrive(const Input& input) {
  own().inputs[round_ % 2] = input;
  memory_.set(own().arrived, round_);
  await_all([](ControlBlock& other) -> SharedWord& { return other.arrived; }, round_);
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    if (input_of(rank).count != input.count) {
      throw ProtocolError(fmt::format("an allreduce of {} values, but worker {} passes {}",
                                      input.count, group_.rank_in_job(Rank{rank}).value,
                                      input_of(rank).count));
    }
  }
}

/// Overwrites the vector of two rounds ago: all ranks have read it, since they have arrived in the
/// previous round.
void SharedAllreduce::reduce_short(std::span<float> values, float factor) {
  const std::span<float> mine = std::span(own().short_vectors[round_ % 2]).first(values.size());
  std::copy(values.begin(), values.end(), mine.begin());
  if (factor != 1) {
    scale(mine, factor);
  }
  arrive({.count = values.size(), .offset = 0, .factor = 1});
  std::copy_n(blocks_[0]->short_vectors[round_ % 2], values.size(), values.begin());
  for (std::uint32_t rank = 1; rank < group_.size(); ++rank) {
    add(values, std::span(blocks_[rank]->short_vectors[round_ % 2]).first(values.size()));
  }
}

void SharedAllreduce::reduce_long(std::span<float> values, float factor) {
  const std::span<float> mine = shared(values);
  arrive({.count = values.size(),
          .offset = *memory_.offset_of(std::as_bytes(mine)),
          .factor = factor});
  if (group_.failures() == nullptr) {
    write_to_all(mine);
    copy(mine, values);
  } else {
    copy_from_all(mine, values);
  }
}

/// Each rank writes its slice of the result to all.
void SharedAllreduce::write_to_all(std::span<float> mine) {
  const Slice slice = slice_of(group_.rank().value, mine.size(), group_.size());
  std::vector<float*> into;
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    into.push_back(slice.of(values_of(rank)).data());
  }
  reduce_slice(mine, into);
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    const std::uint32_t rank = group_.neighbour(step).value;
    await(rank, blocks_[rank]->reduced, reduced_[rank] + segments_of(rank, mine.size()));
  }
  count_segments(mine.size());
  count_bytes(mine.size_bytes());
}

/// Each rank copies the slices of all others into its own values.
void SharedAllreduce::copy_from_all(std::span<float> mine, std::span<float> values) {
  const Slice slice = slice_of(group_.rank().value, mine.size(), group_.size());
  reduce_slice(mine, std::array{slice.of(mine).data()});
  copy(slice.of(mine), slice.of(values));
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    copy_slice(group_.neighbour(step).value, values);
  }
  count_segments(mine.size());
  count_bytes(mine.size_bytes());
  finish();
}

/// Counts the bytes that other ranks read of this rank's values and of its results.
void SharedAllreduce::count_bytes(std::size_t bytes) {
  memory_.count_zero_copy(2 * bytes * (group_.size() - 1) / group_.size());
}

std::uint32_t SharedAllreduce::segments_of(std::uint32_t rank, std::size_t count) const {
  const std::size_t length = slice_of(rank, count, group_.size()).count;
  return static_cast<std::uint32_t>((length + segment_values - 1) / segment_values);
}

void SharedAllreduce::count_segments(std::size_t count) {
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    reduced_[rank] += segments_of(rank, count);
  }
}

/// Returns values that the other ranks can read: `values`, or a copy in shared memory.
std::span<float> SharedAllreduce::shared(std::span<float> values) {
  if (memory_.offset_of(std::as_bytes(values))) {
    return values;
  }
  if (staging_values_ < values.size()) {
    staging_.reset();
    staging_ = memory_.allocate(values.size_bytes());
    staging_values_ = values.size();
  }
  const std::span<float> copy(reinterpret_cast<float*>(staging_.get()), values.size());
  std::memcpy(copy.data(), values.data(), values.size_bytes());
  return copy;
}

std::span<float> SharedAllreduce::values_of(std::uint32_t rank) const {
  const Input& input = input_of(rank);
  const std::span<std::byte> bytes =
      memory_.at(group_.node(Rank{rank}), input.offset, input.count * sizeof(float));
  return {reinterpret_cast<float*>(bytes.data()), input.count};
}

void SharedAllreduce::reduce_slice(std::span<float> mine, std::span<float* const> into) {
  const std::uint32_t self = group_.rank().value;
  const Slice slice = slice_of(self, mine.size(), group_.size());
  std::vector<float*> outputs(into.begin(), into.end());
  std::vector<const float*> addends;
  std::vector<float> factors;
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    addends.push_back(rank == self ? slice.of(mine).data() : slice.of(values_of(rank)).data());
    factors.push_back(input_of(rank).factor);
  }
  std::uint32_t segments = reduced_[self];
  for (std::size_t at = 0; at < slice.count; at += segment_values) {
    const std::size_t count = std::min(segment_values, slice.count - at);
    weighted_sum({.into = outputs, .addends = addends, .factors = factors, .count = count});
    std::for_each(outputs.begin(), outputs.end(), [&](float*& output) { output += count; });
    std::for_each(addends.begin(), addends.end(), [&](const float*& addend) { addend += count; });
    memory_.set(own().reduced, ++segments);
  }
}

void SharedAllreduce::copy_slice(std::uint32_t from, std::span<float> values) {
  const Slice slice = slice_of(from, values.size(), group_.size());
  const std::span<const float> results = slice.of(values_of(from));
  const std::span<float> into = slice.of(values);
  std::uint32_t segments = reduced_[from];
  for (std::size_t at = 0; at < slice.count; at += segment_values) {
    const std::size_t count = std::min(segment_values, slice.count - at);
    await(from, blocks_[from]->reduced, ++segments);
    std::memcpy(into.data() + at, results.data() + at, count * sizeof(float));
  }
}

void SharedAllreduce::finish() {
  memory_.set(own().done, round_);
  await_all([](ControlBlock& other) -> SharedWord& { return other.done; }, round_);
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    if (blocks_[rank]->failed.load(std::memory_order_seq_cst) == round_) {
      throw PeerLost(group_.node(Rank{rank}),
                     fmt::format("worker {} has left an allreduce before its end",
                                 group_.rank_in_job(Rank{rank}).value));
    }
  }
}

void SharedAllreduce::await(std::uint32_t rank, SharedWord& word, std::uint32_t value) {
  group_.await([&](TimePoint until) { memory_.wait(group_.node(Rank{rank}), word, value, until); },
               {.operation = "allreduce",
                .missing = [&] { return std::vector{group_.rank_in_job(Rank{rank})}; }});
}

template <class Word>
void SharedAllreduce::await_all(Word word, std::uint32_t value) {
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    const std::uint32_t rank = group_.neighbour(step).value;
    await(rank, word(*blocks_[rank]), value);
  }
}

const ReducerSpec& shm_reducer() {
  static const ReducerSpec spec{
      .name = "shm",
      .in_memory = true,
      .make = [](Group& group, const ReducerContext&) -> std::unique_ptr<Reducer> {
        return SharedAllreduce::make(group);
      }};
  return spec;
}

}  // namespace syncopate
