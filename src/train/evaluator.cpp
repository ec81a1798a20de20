#include "train/evaluator.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "train/snapshot.hpp"

namespace syncopate {
namespace {

constexpr std::size_t test_batch = 500;

wire::Evaluation evaluation_of(const SnapshotStamp& stamp, const TestResult& result) {
  wire::Evaluation evaluation;
  evaluation.set_round(stamp.round);
  evaluation.set_samples(stamp.samples);
  evaluation.set_epoch(stamp.epoch);
  evaluation.set_training_seconds(stamp.training_seconds);
  evaluation.set_accuracy(result.accuracy);
  evaluation.set_loss(result.loss);
  return evaluation;
}

void evaluate_snapshots(World& world, MemberLink& link, Replica& replica,
                        const EvaluatorOptions& options) {
  const Role keeper = options.plan.server_keeps_model() ? Role::server : Role::worker;
  const Member& sender = *link.view().find(keeper, Rank{0});
  SnapshotReceiver snapshots(world.transport(), sender.node);
  while (const auto stamp = snapshots.receive(replica)) {
    const TimePoint start = world.now();
    wire::Evaluation evaluation = evaluation_of(*stamp, test(replica, options.dataset));
    evaluation.set_evaluation_seconds(to_seconds(world.now() - start));
    link.report(evaluation);
  }
}

}  // namespace

TestResult test(Replica& replica, const Dataset& dataset) {
  std::vector<std::uint32_t> indices(dataset.test.samples());
  std::iota(indices.begin(), indices.end(), 0U);
  Batch batch;
  PassResult sum;
  for (std::size_t at = 0; at < indices.size(); at += test_batch) {
    const std::size_t count = std::min(test_batch, indices.size() - at);
    gather(dataset, dataset.test, std::span(indices).subspan(at, count), batch);
    const PassResult result = replica.evaluate(batch);
    sum.samples += result.samples;
    sum.correct += result.correct;
    sum.loss_sum += result.loss_sum;
  }
  return {.accuracy = static_cast<double>(sum.correct) / sum.samples,
          .loss = sum.loss_sum / sum.samples};
}

void run_evaluator(World& world, MemberLink& link, Replica& replica,
                   const EvaluatorOptions& options) {
  link.join();
  try {
    evaluate_snapshots(world, link, replica, options);
  } catch (const std::exception& error) {
    link.fail(error);
  }
  link.leave({});
}

}  // namespace syncopate
