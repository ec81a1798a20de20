#pragma once

#include "data/dataset.hpp"
#include "job/spec/job_plan.hpp"
#include "membership/member_link.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// The accuracy and mean loss of `replica` on the test set.
struct TestResult {
  double accuracy = 0;
  double loss = 0;
};
TestResult test(Replica& replica, const Dataset& dataset);

/// Recomputes the running statistics of `replica` (`Replica::recompute_statistics`) over training samples,
/// ten batches of 500 or as many as there are: the same of every seed, whoever calls.
void recompute_statistics(Replica& replica, const Dataset& dataset, std::uint64_t seed);

/// The evaluator's role: joins through `link`, tests every snapshot that the keeper of the model
/// sends (rank 0, or the first shard of a server), reports each to the coordinator, and leaves when no
/// more will come. With `--batch-norm recomputed` it recomputes the running statistics before each test.
/// Errors: what ended the job.
struct EvaluatorOptions {
  const JobPlan& plan;
  const Dataset& dataset;
};
void run_evaluator(World& world, MemberLink& link, Replica& replica,
                   const EvaluatorOptions& options);

}  // namespace syncopate
