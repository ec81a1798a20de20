#pragma once

#include "cluster/member_link.hpp"
#include "data/dataset.hpp"
#include "scheme/replica.hpp"
#include "train/job_plan.hpp"

namespace syncopate {

/// The accuracy and mean loss of `replica` on the test set.
struct TestResult {
  double accuracy = 0;
  double loss = 0;
};
TestResult test(Replica& replica, const Dataset& dataset);

/// The evaluator's role: joins through `link`, tests every snapshot that the keeper of the model
/// sends (rank 0, or the first shard of a server), reports each to the coordinator, and leaves when no
/// more will come.
/// Errors: what ended the job.
struct EvaluatorOptions {
  const JobPlan& plan;
  const Dataset& dataset;
};
void run_evaluator(World& world, MemberLink& link, Replica& replica,
                   const EvaluatorOptions& options);

}  // namespace syncopate
