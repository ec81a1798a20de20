#pragma once

#include <map>
#include <optional>
#include <set>

#include "server/backup_admission.hpp"
#include "server/consistency.hpp"

namespace syncopate {

/// Backup workers: a step closes with the first n of P = n + b gradients that were computed for it;
/// later ones are left out, and their workers go on with the step that is open.
///
/// With several shards, gradients reach them in different orders. So shard 0 decides, and tells the
/// others whose gradients make up a step; they wait for these.
class BackupSteps : public Consistency {
 public:
  BackupSteps(ShardStore& store, const ConsistencyOptions& options);

  std::vector<Rank> asked(Rank worker, bool push, bool pull) override;
  std::vector<Rank> gone(Rank worker) override;
  std::vector<Rank> told(std::uint64_t step, std::span<const Rank> workers) override;
  std::vector<Rank> waited_for(Rank worker) const override;
  void resumed() override;

 private:
  std::vector<Rank> decide(Rank worker);
  std::vector<Rank> close_if_whole();
  std::vector<Rank> close_as_decided();
  std::vector<Rank> close_as_told();
  std::vector<Rank> close(const std::vector<Rank>& made_of);
  std::vector<Rank> answer(std::vector<Rank> workers);
  std::vector<Rank> leave_out(Rank worker);
  bool is_late(Rank worker) const;

  ShardStore& store_;
  ConsistencyOptions options_;
  BackupAdmission admission_;                            ///< of the first shard
  std::map<std::uint64_t, std::vector<Rank>> verdicts_;  ///< of other shards: told and not closed
  std::set<Rank> waiting_;                               ///< with a gradient of the open step
  std::set<Rank> gone_;
};

}  // namespace syncopate
