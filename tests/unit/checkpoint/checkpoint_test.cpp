// Goal:   a checkpoint restores parameters, buffers, optimizer and progress exactly, and a
//         checkpoint of another training is refused.
// Method: a toy replica trains for some steps and is saved; a new replica is restored from it, and
//         both continue.

#include "checkpoint/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/random.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAreArray;

constexpr ToyReplica::Options toy{.features = 3, .classes = 4, .momentum = 0.9};

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / ("syncopate-checkpoint-" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

Batch random_batch(std::uint64_t seed) {
  Random random(seed);
  Batch batch{.shape = {1, 1, 3}, .features = {}, .labels = {}};
  for (int i = 0; i < 8; ++i) {
    batch.labels.push_back(static_cast<std::int64_t>(random.below(4)));
    for (int j = 0; j < 3; ++j) {
      batch.features.push_back(static_cast<float>(random.normal()));
    }
  }
  return batch;
}

void train(Replica& replica, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t step = from; step < to; ++step) {
    replica.backward(random_batch(step));
    replica.local_step();
  }
}

void write(const fs::path& path, const TrainingProgress& progress, Replica& replica) {
  write_checkpoint(path, progress, "toy",
                   {.layout = layout_of(replica),
                    .params = replica.view(ReplicaVector::params),
                    .buffers = replica.view(ReplicaVector::buffers),
                    .states = {{state_of_optimizer, replica.optimizer_state()}}});
}

TEST(Checkpoint, TrainingGoesOnAsIfItHadNeverStopped) {
  const fs::path path = fresh_folder("exact") / "a.safetensors";
  const TrainingProgress progress{
      .step = 10, .round = 9, .samples = 80, .training = Duration(123456789)};
  LogisticReplica original(toy);
  original.initialise(1);
  train(original, 0, 10);
  write(path, progress, original);
  train(original, 10, 20);

  LogisticReplica restored(toy);
  const Checkpoint checkpoint(read_file(path), "a", "toy");
  load_checkpoint(checkpoint, restored);
  EXPECT_EQ(checkpoint.progress(), progress);
  train(restored, 10, 20);
  EXPECT_THAT(restored.view(ReplicaVector::params),
              ElementsAreArray(original.view(ReplicaVector::params)));
  EXPECT_THAT(restored.view(ReplicaVector::buffers),
              ElementsAreArray(original.view(ReplicaVector::buffers)));
}

TEST(Checkpoint, RefusesAnotherNetworkAndAnotherShape) {
  const fs::path path = fresh_folder("refuse") / "a.safetensors";
  LogisticReplica replica(toy);
  write(path, {}, replica);
  try {
    const Checkpoint checkpoint(read_file(path), "a", "lenet5");
    FAIL() << "another network";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "a is a checkpoint of toy, and this job trains lenet5");
  }
  LogisticReplica larger({.features = 5, .classes = 4, .momentum = 0.9});
  EXPECT_THROW(load_checkpoint(Checkpoint(read_file(path), "a", "toy"), larger), DataError);
}

/// The toy's parameters as two tensors; the name of one is a suffix of the other's.
class TwoTensors : public LogisticReplica {
 public:
  TwoTensors() : LogisticReplica(toy) {}
  std::vector<TensorInfo> layout(ReplicaVector which) const override {
    if (which == ReplicaVector::buffers) {
      return LogisticReplica::layout(which);
    }
    return {{"fc.weight", {2, 5}, 0}, {"weight", {6}, 10}};
  }
};

TEST(Checkpoint, HoldsOptimizerStateByParameter) {
  const fs::path path = fresh_folder("by-parameter") / "a.safetensors";
  TwoTensors original;
  original.initialise(1);
  train(original, 0, 3);
  const OptimizerState state = original.optimizer_state();
  const std::vector<float>& velocity = state.slots.at("momentum_buffer");
  write_checkpoint(
      path, {}, "toy",
      {.layout = layout_of(original),
       .params = original.view(ReplicaVector::params),
       .buffers = original.view(ReplicaVector::buffers),
       .states = {{state_of_optimizer, state},
                  {"server.0", {.slots = {{"flat", {1, 2}}}, .counters = {{"n", 3}}}}}});
  const Safetensors file(read_file(path), "a");
  const std::string name = "optimizer.momentum_buffer.fc.weight";
  EXPECT_EQ(file.shape(name), (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(file.values(name), std::vector<float>(velocity.begin(), velocity.begin() + 10));
  EXPECT_EQ(file.values("optimizer.momentum_buffer.weight"),
            std::vector<float>(velocity.begin() + 10, velocity.end()));

  const Checkpoint checkpoint(read_file(path), "a", "toy");
  EXPECT_EQ(checkpoint.state(state_of_optimizer).slots, state.slots);
  EXPECT_EQ(checkpoint.state("server.0").slots.at("flat"), (std::vector<float>{1, 2}));
  EXPECT_EQ(checkpoint.state("server.0").counters.at("n"), 3);
}

TEST(Checkpoint, RefusesTheFormOfAnOlderVersion) {
  const std::vector<float> values(16);
  const std::string bytes = encode_safetensors({{"format", "syncopate 1"}, {"network", "toy"}},
                                               std::vector<NamedTensor>{{"weight", {16}, values}});
  try {
    const Checkpoint checkpoint(bytes, "old.safetensors", "toy");
    FAIL() << "an older form";
  } catch (const DataError& error) {
    EXPECT_STREQ(
        error.what(),
        "old.safetensors was written by an older version, whose optimizer state has another "
        "form; begin the run again");
  }
}

TEST(Checkpoint, RefusesCountsThatAreImpossible) {
  const fs::path path = fresh_folder("counts") / "a.safetensors";
  LogisticReplica replica(toy);
  write(path, {.step = 4, .round = 3, .samples = 2, .training = Duration(1)}, replica);
  const Safetensors whole(read_file(path), "a");
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  for (const std::string& name : whole.names()) {
    values.push_back(whole.values(name));
    tensors.push_back({name, whole.shape(name), values.back()});
  }
  for (const std::string count : {"step", "round", "samples", "training_ns"}) {
    for (const std::string damage : {"-1", "9223372036854775808", "7x", ""}) {
      Metadata metadata = whole.metadata();
      metadata[count] = damage;
      const Checkpoint checkpoint(encode_safetensors(metadata, tensors), "a", "toy");
      EXPECT_THROW(checkpoint.progress(), DataError) << count << " " << damage;
    }
  }
  Metadata metadata = whole.metadata();
  metadata["round"] = "-3";
  try {
    Checkpoint(encode_safetensors(metadata, tensors), "a", "toy").progress();
    FAIL() << "a negative round";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "a: its round is -3, which is no count");
  }
}

TEST(Checkpoint, ReadsBackAnyCounterOfAState) {
  const fs::path path = fresh_folder("signed") / "a.safetensors";
  LogisticReplica replica(toy);
  const std::map<std::string, std::int64_t> counters{
      {"least", std::numeric_limits<std::int64_t>::min()},
      {"most", std::numeric_limits<std::int64_t>::max()},
      {"none", 0}};
  write_checkpoint(path, {}, "toy",
                   {.layout = layout_of(replica),
                    .params = replica.view(ReplicaVector::params),
                    .buffers = replica.view(ReplicaVector::buffers),
                    .states = {{"server.0", {.slots = {}, .counters = counters}}}});
  EXPECT_EQ(Checkpoint(read_file(path), "a", "toy").state("server.0").counters, counters);
}

TEST(Checkpoint, TheNewestWholeOneIsTakenAndDamagedOnesAreNamed) {
  const fs::path folder = fresh_folder("damaged");
  LogisticReplica replica(toy);
  for (const std::uint64_t round : {0, 5, 40, 300}) {
    write(folder / checkpoint_name(round), {.round = round}, replica);
  }
  std::string bytes = read_file(folder / checkpoint_name(300));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(folder / checkpoint_name(300), bytes);
  write_file(folder / checkpoint_name(40), "half");
  std::vector<std::string> lines;
  const auto note = [&](const std::string& line) { lines.push_back(line); };
  EXPECT_EQ(latest_whole_checkpoint(folder, note), folder / checkpoint_name(5));
  ASSERT_EQ(lines.size(), 2U);
  const std::string newest = (folder / checkpoint_name(300)).string();
  EXPECT_TRUE(lines[0].starts_with(newest + " is not a whole safetensors file: its checksum is "))
      << lines[0];
  EXPECT_TRUE(lines[0].ends_with("; it is now round-0000000300.safetensors.damaged")) << lines[0];
  EXPECT_TRUE(fs::exists(newest + ".damaged"));
  EXPECT_EQ(latest_checkpoint(folder), folder / checkpoint_name(5)) << "the others are set aside";
  EXPECT_EQ(latest_whole_checkpoint(folder, note), folder / checkpoint_name(5));
  EXPECT_EQ(lines.size(), 2U);
  EXPECT_EQ(latest_whole_checkpoint(folder / "none", note), std::nullopt);
}

TEST(Checkpoint, WhatIsNoFileIsSetAsideToo) {
  const fs::path folder = fresh_folder("no-files");
  LogisticReplica replica(toy);
  write(folder / checkpoint_name(5), {.round = 5}, replica);
  fs::create_directory(folder / checkpoint_name(40));
  fs::create_symlink("nowhere", folder / checkpoint_name(300));
  prune_checkpoints(folder, 3);  // cannot remove the folder
  std::vector<std::string> lines;
  EXPECT_EQ(latest_whole_checkpoint(folder, [&](const auto& line) { lines.push_back(line); }),
            folder / checkpoint_name(5));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], (folder / checkpoint_name(300)).string() +
                          ": expected a checkpoint, found no file; it is now "
                          "round-0000000300.safetensors.damaged");
}

TEST(Checkpoint, FindsTheLatestAndPrunesTheRest) {
  const fs::path folder = fresh_folder("prune");
  EXPECT_EQ(latest_checkpoint(folder), std::nullopt);
  for (const std::uint64_t round : {0, 5, 40, 300}) {
    write_file(folder / checkpoint_name(round), "");
  }
  write_file(folder / "notes.txt", "");
  EXPECT_EQ(latest_checkpoint(folder), folder / checkpoint_name(300));
  EXPECT_EQ(round_of(folder / checkpoint_name(300)), 300U);
  EXPECT_THROW(round_of(folder / "notes.txt"), DataError);
  prune_checkpoints(folder, 2);
  EXPECT_FALSE(fs::exists(folder / checkpoint_name(5)));
  EXPECT_TRUE(fs::exists(folder / checkpoint_name(40)));
  EXPECT_TRUE(fs::exists(folder / checkpoint_name(0))) << "the state before the first step stays";
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
}

}  // namespace
}  // namespace syncopate
