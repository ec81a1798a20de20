#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.hpp"
#include "server/consistency.hpp"

namespace syncopate {

/// Synchronous SGD with backup workers (Chen et al. 2016): of P = n + b workers, the first n
/// gradients of a step make its update; later ones of that step are dropped, and counted.
///
/// Every gradient is admitted whole or dropped, and those admitted are all of the open step. What
/// makes a step close is `arrived` and `remove`, so look at `closes` after either.
///
/// Death:    a worker that is removed brings nothing more, but what it brought into the open step
///           stays. A step never waits for more gradients than can still come: its quota is n, or
///           the workers that are left and the gradients left by the dead, if these are fewer.
/// Liveness: once all that are present have brought their gradients of the open step, it closes.
/// Thread:   one at a time.
class BackupAdmission {
 public:
  struct Options {
    std::uint32_t workers = 0;  ///< P
    std::uint32_t backups = 0;  ///< b, less than P
  };
  enum class Verdict { admitted, dropped };

  /// Errors: ConfigError, where no worker would be left to wait for.
  explicit BackupAdmission(const Options& options);

  /// A gradient of `worker`, computed at `step`. Dropped are those of steps that have closed, those
  /// that come once the quota is full, and what a removed worker still had on its way.
  /// Errors: ProtocolError, for a step that is not open yet, for a second gradient of one worker in
  /// one step, and for a worker that there is none of; nothing has changed then.
  Verdict arrived(Rank worker, Step step);
  /// Whether the open step has the gradients that it waits for, and at least one.
  bool closes() const;
  /// Whose gradients the open step has, in rank order: the order to add in, whatever came first.
  std::vector<Rank> admitted() const;
  /// Opens the next step. Errors: InternalError, unless `closes()`.
  void close();
  void remove(Rank worker);

  /// The open step, counted from 0.
  Step step() const { return step_; }
  /// For a server that goes on where another ended. Forgets what the open step has.
  void set_step(Step step);
  /// Gradients dropped so far.
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Worker {
    bool present = true;
    bool admitted = false;  ///< in the open step
  };
  void expect_possible(Rank worker, Step step) const;
  std::uint32_t quota() const;

  std::uint32_t needed_;
  std::vector<Worker> workers_;  ///< by rank
  Step step_{0};
  std::uint64_t dropped_ = 0;
};

/// Backup workers: a step closes with the first n of P = n + b gradients that were computed for it;
/// later ones are left out, and their workers go on with the step that is open.
///
/// With several shards, gradients reach them in different orders. So shard 0 decides, and tells the
/// others whose gradients make up a step; they wait for these.
class BackupSteps : public Consistency {
 public:
  BackupSteps(ShardStore& store, const ConsistencyOptions& options);

  std::vector<Rank> on_request(Rank worker, bool push, bool pull) override;
  std::vector<Rank> on_gone(Rank worker) override;
  std::vector<Rank> on_admitted(std::uint64_t step, std::span<const Rank> workers) override;
  std::vector<Rank> waited_for(Rank worker) const override;
  void on_resumed() override;

 private:
  std::vector<Rank> decide(Rank worker);
  std::vector<Rank> close_if_complete();
  std::vector<Rank> close_as_decided();
  std::vector<Rank> close_as_admitted();
  std::vector<Rank> close(const std::vector<Rank>& admitted);
  std::vector<Rank> answer(std::vector<Rank> workers);
  std::vector<Rank> reject(Rank worker);
  bool is_late(Rank worker) const;

  ShardStore& store_;
  ConsistencyOptions options_;
  BackupAdmission admission_;                            ///< of the first shard
  std::map<std::uint64_t, std::vector<Rank>> verdicts_;  ///< of other shards: told and not closed
  std::set<Rank> waiting_;                               ///< with a gradient of the open step
  std::set<Rank> gone_;
};

}  // namespace syncopate
