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
/// The table admits or drops every gradient as a whole; all admitted ones are of the open step. A
/// step may close after `arrived` and after `remove`, so call `closes` after either.
///
/// Death:    a removed worker pushes nothing more, but its gradient of the open step stays. A step
///           never waits for more gradients than can still arrive: its quota is n, or the number of
///           remaining workers and of gradients of removed ones, if that is less.
/// Liveness: once all remaining workers have pushed their gradients of the open step, it closes.
/// Thread:   one at a time.
class BackupAdmission {
 public:
  struct Options {
    std::uint32_t workers = 0;  ///< P
    std::uint32_t backups = 0;  ///< b, less than P
  };
  enum class Verdict { admitted, dropped };

  /// Errors: ConfigError if `backups` is not less than `workers`.
  explicit BackupAdmission(const Options& options);

  /// A gradient of `worker`, computed at `step`. The table drops the gradients of closed steps,
  /// those after the quota is full, and those of removed workers.
  /// Errors: ProtocolError if the step is not open yet, it already has a gradient of this worker,
  ///         or the worker is unknown; the table is then unchanged.
  Verdict arrived(Rank worker, Step step);
  /// True once the open step has all the gradients that it waits for, and at least one.
  bool closes() const;
  /// The workers with a gradient in the open step, in rank order, which is the order of reduction.
  std::vector<Rank> admitted() const;
  /// Opens the next step. Errors: InternalError, unless `closes()`.
  void close();
  void remove(Rank worker);
  /// A removed worker is back.
  void restore(Rank worker) { workers_.at(worker.value).present = true; }

  /// The open step, counted from 0.
  Step step() const { return step_; }
  /// Continues at `step`, on a server that resumes another. Forgets the gradients of the open step.
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
/// later ones are dropped, and their workers continue with the open step.
///
/// Gradients reach several shards in different orders. So shard 0 decides whose gradients make up a
/// step, and notifies the others, which wait for these gradients.
class BackupSteps : public Consistency {
 public:
  BackupSteps(ShardStore& store, const ConsistencyOptions& options);

  std::vector<Rank> on_request(Rank worker, bool push, bool pull) override;
  std::vector<Rank> on_gone(Rank worker) override;
  std::vector<Rank> on_rest(Rank worker) override { return on_gone(worker); }
  void on_return(Rank worker) override;
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
  std::map<std::uint64_t, std::vector<Rank>> verdicts_;  ///< on other shards: received, not closed
  std::set<Rank> waiting_;                               ///< with a gradient of the open step
  std::set<Rank> gone_;
};

}  // namespace syncopate
