#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collective/group.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {

/// Sums over ranks of one host, in memory that all of them reach, without a message.
///
/// Every rank has a desk in shared memory, on which it says where its values are and how far it is.
///
/// Long vectors: each is cut into P slices, of which slice r is rank r's to sum. When all have arrived, a
///     rank adds up its slice of all vectors, where they are, and writes the sums into all of them.
///     When all slices are summed, all have the whole.
///     Cost: 2 meetings; every rank reads N bytes and writes N, and adds N/P · (P − 1) values.
///     In a group that goes on without those who are lost, nobody may write into memory of others, who
///     may have left: there a rank writes its sums into its own vector alone, and the others copy them
///     from there, segment by segment, as soon as they are summed.
///     Cost: 3 meetings, and (P − 1)/P · N bytes more to be read.
/// Short vectors: every rank lays a copy of its values on its desk, and when all have arrived, adds up
///     those of all. One meeting, (P − 1) N additions a rank.
///
/// Values that are not in shared memory are copied there first; `SharedMemory::allocate` saves that.
///
/// The ranks are added in their order, by one rank or by all alike, so all have the same bits.
///
/// Who leaves a round with an error says so before it touches its values again: nobody who still reads
/// them takes the result for a sum.
///
/// Thread: one collective at a time per group.
class SharedAllreduce {
  struct Desk;
  struct Made {};  ///< so that none but `make` constructs it

 public:
  /// Null where a rank does not reach another, on all ranks alike. Communicates.
  /// Errors: those of `allgather`.
  static std::unique_ptr<SharedAllreduce> make(Group& group);

  SharedAllreduce(Made, Group& group, std::vector<Desk*> desks);
  SharedAllreduce(const SharedAllreduce&) = delete;
  SharedAllreduce& operator=(const SharedAllreduce&) = delete;

  /// Returns when all ranks have called it. Errors: as `run`.
  void meet() { run({}, 1); }

  /// Sums `values`, times `factor`, over all ranks, in place.
  /// Errors: PeerLost (values then unspecified), TimedOut, ViewChanged; ProtocolError where a rank brings
  ///         another number of values.
  void run(std::span<float> values, float factor);

 private:
  /// Values of a round this long at most are laid on the desk.
  static constexpr std::size_t short_values = 1024;
  static constexpr std::size_t segment_values = 32 * 1024;

  struct Offer {
    std::uint64_t count;
    std::uint64_t place;
    float factor;
  };
  struct Desk {
    SharedWord arrived;  ///< in so many rounds
    SharedWord summed;   ///< segments of this rank's slice, of all rounds
    SharedWord done;     ///< rounds in which this rank reads nothing of others any more
    std::atomic<std::uint32_t> left;  ///< the latest round that ended with an error
    Offer offers[2];                  ///< of this round and the one before, by turns
    float laid[2][short_values];      ///< likewise
  };

  void sum(std::span<float> values, float factor);
  void arrive(const Offer& offer);
  void sum_short(std::span<float> values, float factor);
  void sum_long(std::span<float> values, float factor);
  std::span<float> shared(std::span<float> values);
  void sum_slice(std::span<float> mine, std::span<float* const> into);
  void hand_out(std::span<float> mine);
  void collect(std::span<float> mine, std::span<float> values);
  std::uint32_t segments_of(std::uint32_t rank, std::size_t count) const;
  void count_segments(std::size_t count);
  void count_bytes(std::size_t bytes);
  void copy_slice(std::uint32_t from, std::span<float> values);
  void finish();

  Desk& desk() { return *desks_[group_.rank().value]; }
  const Offer& offer_of(std::uint32_t rank) const { return desks_[rank]->offers[round_ % 2]; }
  std::span<float> values_of(std::uint32_t rank) const;
  void await(std::uint32_t rank, SharedWord& word, std::uint32_t value);
  template <class Word>
  void await_all(Word word, std::uint32_t value);

  Group& group_;
  SharedMemory& memory_;
  std::vector<Desk*> desks_;  ///< by rank
  std::uint32_t round_ = 0;
  std::vector<std::uint32_t> summed_;  ///< segments of each rank's slices in the rounds before
  std::shared_ptr<std::byte> staging_;
  std::size_t staging_values_ = 0;
};

}  // namespace syncopate
