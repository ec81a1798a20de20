#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "scheme/scheme.hpp"
#include "scheme/step_info_exchange.hpp"

namespace syncopate {

/// Which workers take part in which round, where a slow worker takes part in every p-th one only.
///
/// A worker of period p that takes part in round r does so next in round r + p. Periods are powers
/// of two, and a worker adopts a longer one only in a round that begins rounds of that period
/// (`adopted_period`). So the workers of a round know who else is in it without a message: everyone
/// of whom they do not know that he comes later. For let i be in rounds r and r + p, and in none
/// between. A worker whose period was longer than p in r, and does not divide r + p, comes later,
/// as i knows. A worker whose period was at most p may have changed it in a round between, but only
/// to one that divides this round's number, and so less than p: it is in r + p.
///
/// A worker that has missed rounds learns in its next one what it has missed: samples, loss and
/// pauses by `Attendance`, and the model from a worker that has been in all (`Averaging`).
///
/// Invariant: equal on all workers of a round, as far as it concerns that round.
/// Thread:    one at a time.
class RoundBook {
 public:
  explicit RoundBook(std::uint32_t workers) : next_(workers, 0) {}

  /// True if the worker of this rank in the job is in `round`.
  bool has(Round round, Rank worker) const { return next_.at(worker.value) <= round.value; }

  /// What this worker says in its next round. `period`: from that round to the one after.
  Attendance attendance(std::uint32_t period) const;

  /// Takes the step infos of the workers of a complete round, in the order of `ranks`, their ranks
  /// in the job. `all`: every worker has been in it.
  void complete(const SyncRound& sync_round, std::span<const Rank> ranks,
                const std::vector<StepInfo>& infos, bool all);

  /// All have the model after the round `last`, and take part again that many rounds later, by rank
  /// in the job; `periods` empty: in the next one.
  void restart(Round last, const std::vector<std::uint32_t>& periods);

  /// The book after the last round, for a worker whose round broke while others completed it; as
  /// many bytes on every worker. `load` returns false if this worker had missed rounds before: the
  /// model that it began from is then unknown to it.
  std::vector<std::byte> packed() const;
  std::size_t packed_bytes() const { return (next_.size() + fixed_values) * sizeof(std::uint64_t); }
  bool load(std::span<const std::byte> packed);

 private:
  static constexpr std::size_t fixed_values = 5;

  std::vector<std::uint64_t>
      next_;                  ///< by rank in the job: the round in which it is next, at least
  std::uint64_t before_ = 0;  ///< the round before the last complete one
  Attendance done_{};
};

/// The last round that any of these workers has been in.
std::uint64_t latest_round(const std::vector<StepInfo>& infos);

/// True if the worker has missed the last round of the others.
bool has_missed_rounds(const StepInfo& info, std::uint64_t latest);

/// The samples of all workers in all rounds, this one included: the same on every worker of it.
std::uint64_t samples_with(const std::vector<StepInfo>& infos);

/// Scales the weights of workers that have missed rounds. Such a worker brings its change since its
/// last round, with the weight n_i / N, N the samples of all in these rounds; the others share what
/// is left as in any round. With S the weights of those that have missed none, and S_i the samples
/// of rounds that i has missed, i's weight in a mean over this round is
///
///     n_i · S / (S_i + S)
///
/// Without a worker that has missed rounds nothing changes, nor where the others bring nothing.
/// Pure.
void weigh_missed_rounds(std::vector<StepInfo>& infos);

/// Adds to a round what the worker with step info `mine` has missed. Pure.
void add_missed_rounds(SyncRound& sync_round, const std::vector<StepInfo>& infos,
                       const StepInfo& mine);

}  // namespace syncopate
