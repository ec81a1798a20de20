#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collective/group.hpp"
#include "collective/reducer.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {

/// An allreduce over ranks of one host, in memory that all of them reach, without messages.
///
/// Every rank has a control block in shared memory, in which it publishes where its values are and
/// how far it has come.
///
/// Long vectors: Each is cut into P slices; rank r reduces slice r. When all ranks have arrived,
///     each reads its slice of all vectors in place, and writes the result into all of them. When
///     all slices are reduced, all ranks have the whole result.
///     Cost: 2 barriers; every rank reads N bytes and writes N, and adds N/P · (P − 1) values.
///     In a group that drops lost members no rank may write into the memory of others, which may
///     have left: there a rank writes its result only into its own vector, and the others copy it
///     from there, segment by segment, as soon as it is reduced.
///     Cost: 3 barriers, and (P − 1)/P · N more bytes to read.
/// Short vectors: Every rank copies its values into its control block. When all have arrived, each
///     adds the values of all. One barrier, (P − 1) N additions per rank.
///
/// Values outside shared memory are copied there first; `SharedMemory::allocate` avoids that.
///
/// Values are added in the order of ranks, by one rank or by all in the same way, so all ranks have
/// the same bits.
///
/// A rank that leaves a round with an error publishes the error before it touches its values again,
/// so that no other rank takes values that it still reads for a result.
///
/// Thread: one collective at a time per group.
class SharedAllreduce final : public Reducer {
  struct ControlBlock;
  struct Made {};  ///< only `make` can construct

 public:
  /// Null on all ranks if one of them does not reach the memory of another. A collective.
  /// Errors: those of `allgather`.
  static std::unique_ptr<SharedAllreduce> make(Group& group);

  SharedAllreduce(Made, Group& group, std::vector<ControlBlock*> blocks);
  SharedAllreduce(const SharedAllreduce&) = delete;
  SharedAllreduce& operator=(const SharedAllreduce&) = delete;

  /// Returns when all ranks have called it. Errors: as `reduce`.
  void barrier() { reduce({}); }

  /// Errors: also ProtocolError if a rank has another number of values.
  void reduce(const Contribution& mine) override;

 private:
  /// The longest vector that is copied into the control blocks.
  static constexpr std::size_t short_values = 1024;
  static constexpr std::size_t segment_values = 32 * 1024;

  /// A rank's values of one round.
  struct Input {
    std::uint64_t count;
    std::uint64_t offset;  ///< in the shared memory of the rank
    float factor;
  };
  struct ControlBlock {
    SharedWord arrived;  ///< the number of rounds in which this rank has arrived
    SharedWord reduced;  ///< segments of this rank's slices, over all rounds
    SharedWord done;     ///< rounds in which this rank has finished reading from others
    std::atomic<std::uint32_t> failed;     ///< the latest round that ended with an error
    Input inputs[2];                       ///< of this round and the one before, alternating
    float short_vectors[2][short_values];  ///< of this round and the one before, alternating
  };

  void arrive(const Input& input);
  void reduce_short(std::span<float> values, float factor);
  void reduce_long(std::span<float> values, float factor);
  std::span<float> shared(std::span<float> values);
  void reduce_slice(std::span<float> mine, std::span<float* const> into);
  void write_to_all(std::span<float> mine);
  void copy_from_all(std::span<float> mine, std::span<float> values);
  std::uint32_t segments_of(std::uint32_t rank, std::size_t count) const;
  void count_segments(std::size_t count);
  void count_bytes(std::size_t bytes);
  void copy_slice(std::uint32_t from, std::span<float> values);
  void finish();

  ControlBlock& own() { return *blocks_[group_.rank().value]; }
  const Input& input_of(std::uint32_t rank) const { return blocks_[rank]->inputs[round_ % 2]; }
  std::span<float> values_of(std::uint32_t rank) const;
  void await(std::uint32_t rank, SharedWord& word, std::uint32_t value);
  template <class Word>
  void await_all(Word word, std::uint32_t value);

  Group& group_;
  SharedMemory& memory_;
  std::vector<ControlBlock*> blocks_;  ///< by rank
  std::uint32_t round_ = 0;
  std::vector<std::uint32_t> reduced_;  ///< segments of each rank's slices in the rounds before
  std::shared_ptr<std::byte> staging_;
  std::size_t staging_values_ = 0;
};

}  // namespace syncopate
