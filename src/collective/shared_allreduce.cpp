#include "collective/shared_allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/errors.hpp"
#include "collective/allgather.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {
namespace {

/// What a rank tells the others before the first sum.
struct Greeting {
  std::uint64_t place = 0;
  std::uint64_t ready = 0;  ///< whether all is well with this rank so far
};

std::vector<Greeting> exchange(Group& group, const Greeting& mine) {
  std::vector<Greeting> all(group.size());
  allgather(group, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

bool all_ready(const std::vector<Greeting>& greetings) {
  return std::all_of(greetings.begin(), greetings.end(),
                     [](const Greeting& greeting) { return greeting.ready != 0; });
}

/// Others may look at it when this node has gone. Empty, where there is no memory: then nobody sums in it.
std::span<std::byte> desk_in(SharedMemory* memory, std::size_t bytes) {
  try {
    return memory == nullptr ? std::span<std::byte>() : memory->allocate_for_good(bytes);
  } catch (const DataError&) {
    return {};
  }
}

/// A part of `count` values.
struct Range {
  std::size_t begin;
  std::size_t count;

  template <class Value>
  std::span<Value> of(std::span<Value> values) const {
    return values.subspan(begin, count);
  }
};

/// Slices begin at whole lines of the cache, so that no two ranks write to the same one.
Range slice_of(std::uint32_t rank, std::size_t count, std::uint32_t ranks) {
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
  const std::span<std::byte> mine = desk_in(memory, sizeof(Desk));
  Greeting greeting{.ready = mine.empty() ? 0U : 1U};
  if (!mine.empty()) {
    greeting.place = *memory->offset_of(mine);
  }
  const std::vector<Greeting> greetings = exchange(group, greeting);
  greeting.ready = all_ready(greetings) ? 1 : 0;
  std::vector<Desk*> desks;
  for (std::uint32_t rank = 0; greeting.ready != 0 && rank < group.size(); ++rank) {
    const NodeId node = group.node(Rank{rank});
    if (!memory->reaches(node)) {
      greeting.ready = 0;
    } else {
      std::byte* const desk = memory->at(node, greetings[rank].place, sizeof(Desk)).data();
      desks.push_back(std::launder(reinterpret_cast<Desk*>(desk)));
    }
  }
  if (!all_ready(exchange(group, greeting))) {
    return nullptr;
  }
  return std::make_unique<SharedAllreduce>(Made{}, group, std::move(desks));
}

SharedAllreduce::SharedAllreduce(Made, Group& group, std::vector<Desk*> desks)
    : group_(group),
      memory_(*group.transport().shared_memory()),
      desks_(std::move(desks)),
      summed_(desks_.size(), 0) {}

void SharedAllreduce::run(std::span<float> values, float factor) {
  ++round_;
  try {
    sum(values, factor);
  } catch (...) {
    desk().left.store(round_, std::memory_order_seq_cst);
    throw;
  }
}

void SharedAllreduce::sum(std::span<float> values, float factor) {
  if (values.size() <= short_values) {
    sum_short(values, factor);
  } else {
    sum_long(values, factor);
  }
}

void SharedAllreduce::arrive(const Offer& offer) {
  desk().offers[round_ % 2] = offer;
  memory_.set(desk().arrived, round_);
  await_all([](Desk& other) -> SharedWord& { return other.arrived; }, round_);
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    if (offer_of(rank).count != offer.count) {
      throw ProtocolError(fmt::format("a sum of {} values, of which worker {} brings {}",
                                      offer.count, group_.rank_in_job(Rank{rank}).value,
                                      offer_of(rank).count));
    }
  }
}

/// What was laid on a desk two rounds ago has been read by all: they have arrived in the round before.
void SharedAllreduce::sum_short(std::span<float> values, float factor) {
  const std::span<float> laid = std::span(desk().laid[round_ % 2]).first(values.size());
  std::copy(values.begin(), values.end(), laid.begin());
  if (factor != 1) {
    scale(laid, factor);
  }
  arrive({.count = values.size(), .place = 0, .factor = 1});
  std::copy_n(desks_[0]->laid[round_ % 2], values.size(), values.begin());
  for (std::uint32_t rank = 1; rank < group_.size(); ++rank) {
    add(values, std::span(desks_[rank]->laid[round_ % 2]).first(values.size()));
  }
}

void SharedAllreduce::sum_long(std::span<float> values, float factor) {
  const std::span<float> mine = shared(values);
  arrive(
      {.count = values.size(), .place = *memory_.offset_of(std::as_bytes(mine)), .factor = factor});
  if (group_.losses() == nullptr) {
    hand_out(mine);
    copy(mine, values);
  } else {
    collect(mine, values);
  }
}

/// Each rank writes its slice of the sum to all.
void SharedAllreduce::hand_out(std::span<float> mine) {
  const Range slice = slice_of(group_.rank().value, mine.size(), group_.size());
  std::vector<float*> into;
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    into.push_back(slice.of(values_of(rank)).data());
  }
  sum_slice(mine, into);
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    const std::uint32_t rank = group_.neighbour(step).value;
    await(rank, desks_[rank]->summed, summed_[rank] + segments_of(rank, mine.size()));
  }
  count_segments(mine.size());
  count_bytes(mine.size_bytes());
}

/// Each rank takes the slices of all others to where its values belong.
void SharedAllreduce::collect(std::span<float> mine, std::span<float> values) {
  const Range slice = slice_of(group_.rank().value, mine.size(), group_.size());
  sum_slice(mine, std::array{slice.of(mine).data()});
  copy(slice.of(mine), slice.of(values));
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    copy_slice(group_.neighbour(step).value, values);
  }
  count_segments(mine.size());
  count_bytes(mine.size_bytes());
  finish();
}

/// What others read of this rank's values, and what they have of its sums.
void SharedAllreduce::count_bytes(std::size_t bytes) {
  memory_.count_zero_copy(2 * bytes * (group_.size() - 1) / group_.size());
}

std::uint32_t SharedAllreduce::segments_of(std::uint32_t rank, std::size_t count) const {
  const std::size_t length = slice_of(rank, count, group_.size()).count;
  return static_cast<std::uint32_t>((length + segment_values - 1) / segment_values);
}

void SharedAllreduce::count_segments(std::size_t count) {
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    summed_[rank] += segments_of(rank, count);
  }
}

/// Where the others can read the values: where they are, or a copy.
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
  const Offer& offer = offer_of(rank);
  const std::span<std::byte> bytes =
      memory_.at(group_.node(Rank{rank}), offer.place, offer.count * sizeof(float));
  return {reinterpret_cast<float*>(bytes.data()), offer.count};
}

void SharedAllreduce::sum_slice(std::span<float> mine, std::span<float* const> into) {
  const std::uint32_t self = group_.rank().value;
  const Range slice = slice_of(self, mine.size(), group_.size());
  std::vector<float*> places(into.begin(), into.end());
  std::vector<const float*> addends;
  std::vector<float> factors;
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    addends.push_back(rank == self ? slice.of(mine).data() : slice.of(values_of(rank)).data());
    factors.push_back(offer_of(rank).factor);
  }
  std::uint32_t segments = summed_[self];
  for (std::size_t at = 0; at < slice.count; at += segment_values) {
    const std::size_t count = std::min(segment_values, slice.count - at);
    weighted_sum({.into = places, .addends = addends, .factors = factors, .count = count});
    std::for_each(places.begin(), places.end(), [&](float*& place) { place += count; });
    std::for_each(addends.begin(), addends.end(), [&](const float*& addend) { addend += count; });
    memory_.set(desk().summed, ++segments);
  }
}

void SharedAllreduce::copy_slice(std::uint32_t from, std::span<float> values) {
  const Range slice = slice_of(from, values.size(), group_.size());
  const std::span<const float> sums = slice.of(values_of(from));
  const std::span<float> into = slice.of(values);
  std::uint32_t segments = summed_[from];
  for (std::size_t at = 0; at < slice.count; at += segment_values) {
    const std::size_t count = std::min(segment_values, slice.count - at);
    await(from, desks_[from]->summed, ++segments);
    std::memcpy(into.data() + at, sums.data() + at, count * sizeof(float));
  }
}

void SharedAllreduce::finish() {
  memory_.set(desk().done, round_);
  await_all([](Desk& other) -> SharedWord& { return other.done; }, round_);
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    if (desks_[rank]->left.load(std::memory_order_seq_cst) == round_) {
      throw PeerLost(group_.node(Rank{rank}), fmt::format("worker {} has left a sum before its end",
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
    await(rank, word(*desks_[rank]), value);
  }
}

}  // namespace syncopate
