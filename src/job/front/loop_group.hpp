#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "base/time.hpp"
#include "collective/part_reduction.hpp"
#include "job/front/loop_job.hpp"
#include "job/program/pending.hpp"
#include "job/program/program_group.hpp"
#include "train/program_waits.hpp"

namespace syncopate {

/// A collective that goes on while its caller does something else; so do a send and a receive.
///
/// Thread: any; one waits.
class CollectiveWork {
 public:
  /// One that has ended already.
  CollectiveWork() = default;
  /// `waits`: those of the program; null: it is none of them. `keeps`: what the operation uses.
  CollectiveWork(std::shared_ptr<Pending> operation, std::shared_ptr<ProgramWaits> waits,
                 std::shared_ptr<const void> keeps = nullptr)
      : waits_(std::move(waits)), keeps_(std::move(keeps)), operation_(std::move(operation)) {}

  bool done() const { return !operation_ || operation_->done(); }
  /// Returns once the collective has ended. Errors: those of the collective, in every call;
  /// Cancelled, where the program has left the job before it began, and for a wait that is
  /// interrupted (`interruption`), while the collective goes on.
  void wait() {
    while (!wait_for(interruption::every)) {
      interruption::throw_if_requested();
    }
  }
  /// The same, but no longer than `limit`. False: it has not ended.
  bool wait_for(Duration limit) {
    if (!operation_) {
      return true;
    }
    const ProgramWaits::Wait wait(waits_.get());
    return operation_->wait_for(limit);
  }
  /// The sender, once a receive has ended.
  std::optional<Rank> source() const { return operation_ ? operation_->source() : std::nullopt; }

 private:
  std::shared_ptr<ProgramWaits> waits_;
  std::shared_ptr<const void> keeps_;
  std::shared_ptr<Pending> operation_;  ///< null: it has ended
};

/// Some workers of a job, or all of them. Each passes its own values to a collective, in ranks of
/// the group.
///
/// Collectives: every member calls those of one group in the same order, with the same types and
///   lengths; they are carried out one after the other. Those of several groups, and what is sent
///   to one worker, go on beside each other. In a group of one they do what is left of them.
///
/// The destructor of the last copy waits for the group's collectives and sends under way, not for
///   receives. Once the program has left the job, these have ended with an error.
///
/// Thread: collectives of one group one at a time, while other threads use other groups, or the
///         job; `send`, `receive` and `receive_any` any.
/// Errors: PeerLost, TimedOut (another program has ended, or has not come within the group's
///         limit); ConfigError, for lengths, ranks and operations that are impossible, and in a
///         forked process.
class LoopGroup {
 public:
  /// All workers.
  explicit LoopGroup(const LoopJob& job);
  /// Those of these ranks of the job, this one among them, which member i has rank i of. A
  /// collective of theirs: all pass the same ranks, and where two groups have two members in
  /// common, these open them in the same order. A wait for others takes at most `wait_limit`.
  LoopGroup(const LoopJob& job, const std::vector<std::uint32_t>& ranks, Duration wait_limit);

  std::uint32_t rank() const;
  std::uint32_t size() const;

  /// What `run` and `start` carry out.
  struct Collective {
    std::function<void(ProgramGroup&)> among;  ///< several workers
    std::function<void()> alone = {};          ///< may be empty: there is nothing to do
    CollectiveCall call = {};                  ///< the same on all workers
  };

  /// Replaces `values` by their reduction over the group: the same bits on each. Sums of float32
  /// are added in the order that the fastest algorithm has, all others in that of ranks, those of
  /// bfloat16 and float16 in float32; integers wrap around.
  Collective allreduce(const Values& values, Reduction reduction) const;
  /// Replaces `values` by their reduction on worker `root`; those of the others stay.
  Collective reduce(const Values& values, Reduction reduction, std::uint32_t root) const;
  /// `mine` becomes this worker's block of the reduction of `values`.
  Collective reduce_scatter(const Values& values, const Values& mine, Reduction reduction) const;
  /// Replaces `bytes` by those of worker `root`.
  Collective broadcast(std::span<std::byte> bytes, std::uint32_t root) const;
  /// Block r of `all` becomes what worker r passes as `mine`.
  Collective allgather(std::span<const std::byte> mine, std::span<std::byte> all) const;
  /// The same on worker `root` alone; the others pass an empty `all`.
  Collective gather(std::span<const std::byte> mine, std::span<std::byte> all,
                    std::uint32_t root) const;
  /// `mine` becomes block r of `all` of worker `root`, where this is worker r.
  Collective scatter(std::span<const std::byte> all, std::span<std::byte> mine,
                     std::uint32_t root) const;
  /// `from[r]` becomes what worker r passes as `to` of this one.
  Collective alltoall(std::vector<std::span<const std::byte>> to,
                      std::vector<std::span<std::byte>> from) const;
  /// Ends when every member has called it.
  Collective barrier() const;

  void run(const Collective& collective);
  /// Returns at once; what the collective reads and writes stays as it is until it has ended.
  CollectiveWork start(Collective collective);

  /// Begins to send to one other worker, which receives under the same tag, a number below
  /// `ProgramGroup::tags_to_one`, as many bytes.
  CollectiveWork send(std::span<const std::byte> bytes, std::uint32_t to, std::uint32_t tag);
  CollectiveWork receive(std::span<std::byte> bytes, std::uint32_t from, std::uint32_t tag);
  CollectiveWork receive_any(std::span<std::byte> bytes, std::uint32_t tag);

 private:
  class Membership;
  class Use;

  void expect_rank(std::uint32_t rank, const char* what) const;
  void expect_other(std::uint32_t rank, const char* what) const;

  std::shared_ptr<Membership> membership_;
};

}  // namespace syncopate
