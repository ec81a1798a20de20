#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "data/dataset.hpp"
#include "job/spec/job_plan.hpp"
#include "membership/member_link.hpp"
#include "report/run_folder.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// The worker's role: joins through `link`, begins with the same state as all others, trains, and
/// leaves. In the real world and in the simulator alike.
/// Errors: what ended the job.
struct WorkerOptions {
  const JobPlan& plan;
  const Dataset& dataset;
  RunFolder folder;
  Rank rank;
  std::optional<std::filesystem::path> resume_from{};  ///< a checkpoint
  std::span<std::byte> shared_memory{};  ///< of all workers of this host, zero at first; or none
  std::uint32_t cores = 0;               ///< of this host; 0: as many as its workers need
};
void run_worker(World& world, MemberLink& link, Replica& replica, const WorkerOptions& options);

}  // namespace syncopate
