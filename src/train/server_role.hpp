#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "checkpoint/checkpoint.hpp"
#include "job/spec/job_plan.hpp"
#include "membership/member_link.hpp"
#include "report/run_folder.hpp"

namespace syncopate {

/// The server's role: joins through `link`, serves one shard of the model until every worker has left,
/// and leaves. The first shard also hands snapshots to the evaluator and writes checkpoints. In the
/// real world and in the simulator alike.
/// Errors: what ended the job.
struct ServerOptions {
  const JobPlan& plan;
  RunFolder folder;
  Rank shard;
  ModelLayout layout;
  std::uint64_t train_samples = 0;                   ///< in the training set
  std::optional<std::filesystem::path> resume_from;  ///< a checkpoint
  std::uint32_t hands = 1;  ///< threads for an update of a long shard, this one's among them
};
void run_server(World& world, MemberLink& link, const ServerOptions& options);

}  // namespace syncopate
