// Goal:   the states of workers and pacer reach worker 0 and a checkpoint without the change of a
//         bit, and a damaged state is refused with its name.
// Method: round trips of states of every kind, in memory and through a file.

#include "checkpoint/worker_states.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

States some_states() {
  States states;
  states["optimizer"].slots["momentum"] = {1.5F, -0.25F, 1e-38F};
  states["optimizer"].counters["steps"] = 7;
  states[state_of_loop] = to_state({.step = 12,
                                    .position = {.batch = 3, .taken = 5},
                                    .speed_share = 1.0 / 3,
                                    .training = std::chrono::nanoseconds(123456789)});
  return states;
}

void expect_equal(const States& one, const States& other) {
  ASSERT_EQ(one.size(), other.size());
  for (const auto& [name, state] : one) {
    ASSERT_TRUE(other.contains(name)) << name;
    EXPECT_EQ(state.slots, other.at(name).slots) << name;
    EXPECT_EQ(state.counters, other.at(name).counters) << name;
  }
}

TEST(WorkerStates, ArriveAsTheyWere) {
  expect_equal(decode_states(encode_states(some_states())), some_states());
  EXPECT_TRUE(decode_states(encode_states({})).empty());
}

TEST(WorkerStates, OfALoopAreReadBack) {
  const auto loop = loop_state_in(some_states());
  ASSERT_TRUE(loop);
  EXPECT_EQ(*loop, (LoopState{.step = 12,
                              .position = {.batch = 3, .taken = 5},
                              .speed_share = 1.0 / 3,
                              .training = std::chrono::nanoseconds(123456789)}));
  EXPECT_FALSE(loop_state_in({}));
}

TEST(WorkerStates, OfALoopThatLackAFigureAreRefused) {
  States states = some_states();
  states[state_of_loop].counters.erase("taken");
  EXPECT_THROW(loop_state_in(states), DataError);
}

TEST(WorkerStates, WithImpossibleFiguresAreRefused) {
  for (const char* count : {"step", "batch", "taken", "training_ns", "speed_share"}) {
    States states = some_states();
    states[state_of_loop].counters[count] = -5;  // read as the bits of a float64, this is NaN
    EXPECT_THROW(loop_state_in(states), DataError) << count;
  }
  wire::PacerMemory memory;
  memory.add_workers()->set_step_samples(13);
  const OptimizerState good = to_state(memory);
  for (const auto& [name, value] : good.counters) {
    OptimizerState damaged = good;
    damaged.counters[name] = -5;
    EXPECT_THROW(pacer_memory_in(damaged), DataError) << name;
  }
  OptimizerState large = good;
  large.counters["0.step_samples"] = std::int64_t{1} << 32;
  try {
    pacer_memory_in(large);
    FAIL() << "steps of 2^32 samples";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "a worker's state is damaged: 0.step_samples is 4294967296");
  }
}

TEST(WorkerStates, OfAPacerAreReadBack) {
  wire::PacerMemory memory;
  memory.set_round_time(1'000'000'007);
  memory.mutable_synchronization()->set_mean(0.125);
  for (const double mean : {0.1, 1.0 / 7}) {
    wire::PacerMemory::Worker& worker = *memory.add_workers();
    worker.set_heard(true);
    worker.set_step_samples(13);
    worker.mutable_estimate()->set_mean(mean);
    worker.mutable_estimate()->set_spread(mean / 9);
    worker.mutable_estimate()->add_recent(mean * 1.1);
    worker.mutable_estimate()->set_last_left_out(mean > 0.12);
  }
  EXPECT_EQ(pacer_memory_in(to_state(memory)).SerializeAsString(), memory.SerializeAsString());
}

/// Writes a checkpoint of a model with one tensor and these states; returns its path.
fs::path written(const States& states) {
  const fs::path path = fs::path(testing::TempDir()) / "worker-states.safetensors";
  const ModelLayout layout{.params = {{.name = "weight", .shape = {2}, .offset = 0}},
                           .buffers = {}};
  const std::vector<float> params{1, 2};
  write_checkpoint(path, {.step = 4}, "toy",
                   {.layout = layout, .params = params, .buffers = {}, .states = states});
  return path;
}

TEST(WorkerStates, OfEveryWorkerAreInACheckpoint) {
  States all = in_checkpoint(Rank{0}, some_states());
  States other = some_states();
  other["optimizer"].slots["momentum"] = {9, 9, 9};
  all.merge(in_checkpoint(Rank{10}, other));
  const Checkpoint checkpoint(read_file(written(all)), "it", "toy");
  expect_equal(checkpoint.states_of(Rank{0}), some_states());
  expect_equal(checkpoint.states_of(Rank{10}), other);
  EXPECT_TRUE(checkpoint.states_of(Rank{1}).empty()) << "worker 1 is not worker 10";
}

TEST(WorkerStates, AWorkerGetsItsOwnAlone) {
  States all = in_checkpoint(Rank{0}, some_states());
  all.merge(in_checkpoint(Rank{1}, some_states()));
  all["outer"].slots["momentum"] = {5};
  const Checkpoint whole(read_file(written(all)), "it", "toy");
  const Checkpoint part(whole.without_others(Rank{1}), "part", "toy");
  EXPECT_TRUE(part.states_of(Rank{0}).empty());
  expect_equal(part.states_of(Rank{1}), some_states());
  EXPECT_EQ(part.state("outer").slots.at("momentum"), std::vector<float>{5});
  EXPECT_EQ(part.progress(), whole.progress());
}

TEST(WorkerStates, ThatAreDamagedAreRefused) {
  std::vector<std::byte> bytes = encode_states(some_states());
  bytes.resize(bytes.size() / 2);
  EXPECT_THROW(decode_states(bytes), DataError);
}

}  // namespace
}  // namespace syncopate
