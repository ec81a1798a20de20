#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>

#include "checkpoint/checkpoint.hpp"
#include "data/dataset.hpp"
#include "membership/member_link.hpp"
#include "report/run_folder.hpp"
#include "scheme/replica.hpp"
#include "spec/job_plan.hpp"
#include "train/worker_report.hpp"

// The roles of a job's members, beside its coordinator: worker, server and evaluator. They are the
// same in the real world and in the simulator.
namespace syncopate {

/// The worker's role: joins through `link`, begins with the same state as all other workers,
/// trains, and leaves.
/// Errors: the error that ended the job.
struct WorkerOptions {
  const JobPlan& plan;
  const Dataset& dataset;
  RunFolder folder;
  Rank rank;
  std::optional<std::filesystem::path> resume_from{};  ///< a checkpoint
  std::span<std::byte> shared_memory{};  ///< of all workers of this host, zero at first; or empty
  std::uint32_t cores = 0;               ///< of this host; 0: unknown
  /// The program whose own loop drives the session of this worker, and decides when it ends; empty:
  /// the built-in trainer does, until the configuration ends the job.
  std::optional<ProgramLoop> program{};
};
void run_worker(World& world, MemberLink& link, Replica& replica, const WorkerOptions& options);

/// The server's role: joins through `link`, serves one shard of the model until every worker has
/// left, and leaves. The first shard also sends snapshots to the evaluator and writes checkpoints.
/// Errors: the error that ended the job.
struct ServerOptions {
  const JobPlan& plan;
  RunFolder folder;
  Rank shard;
  ModelLayout layout;
  std::uint64_t train_samples = 0;                   ///< in the training set
  std::optional<std::filesystem::path> resume_from;  ///< a checkpoint
  std::uint32_t threads = 1;  ///< for an update of a long shard, the calling one included
};
void run_server(World& world, MemberLink& link, const ServerOptions& options);

/// The accuracy and mean loss of `replica` on the test set. Calls `progressed` after each batch.
struct TestResult {
  double accuracy = 0;
  double loss = 0;
};
TestResult test_model(
    Replica& replica, const Dataset& dataset, const std::function<void()>& progressed = [] {});

/// Recomputes the running statistics of `replica` (`Replica::recompute_statistics`) over training
/// samples: ten batches of 500, or all if there are fewer. The seed decides which. Calls
/// `progressed` after each batch.
void recompute_statistics(
    Replica& replica, const Dataset& dataset, std::uint64_t seed,
    const std::function<void()>& progressed = [] {});

/// The evaluator's role: joins through `link`, tests every snapshot that worker 0 or the first
/// shard of a server sends, reports the results to the coordinator, and leaves after the last one.
/// With `--batch-norm recomputed` it recomputes the running statistics before each test.
/// Errors: the error that ended the job.
struct EvaluatorOptions {
  const JobPlan& plan;
  const Dataset& dataset;
  /// Called once the tasks of the link run, by the task that tests.
  std::function<void()> before_testing = [] {};
};
void run_evaluator(World& world, MemberLink& link, Replica& replica,
                   const EvaluatorOptions& options);

}  // namespace syncopate
