#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "checkpoint/snapshot.hpp"
#include "telemetry/member_status.hpp"
#include "train/member_roles.hpp"

namespace syncopate {
namespace {

constexpr std::size_t test_batch = 500;
constexpr std::size_t statistics_batches = 10;
/// Time for the coordinator to end the job because a member is lost.
constexpr Duration verdict_limit = std::chrono::seconds(3);

std::size_t statistics_batches_of(const Dataset& dataset) {
  const std::size_t samples = dataset.train.samples();
  return std::min(statistics_batches, samples / std::min(test_batch, samples));
}

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

/// The evaluator's status in its heartbeats, while this object lives: whether it tests, and an
/// upper bound of the duration, from earlier tests and the batches of this one.
class TestReport {
 public:
  TestReport(const Clock& clock, MemberLink& link) : clock_(clock), link_(link) {
    enter("idleness");
    link_.set_status_source([this] { return status_.message(); });
  }
  ~TestReport() { link_.set_status_source({}); }
  TestReport(const TestReport&) = delete;
  TestReport& operator=(const TestReport&) = delete;

  /// Begins a test of `parts` parts.
  void begin(std::size_t parts) {
    begun_ = clock_.now();
    parts_ = parts;
    done_ = 0;
    status_.update([](MemberStatus& status) {
      status.phase = "evaluation";
      status.computing = true;
    });
  }
  /// Another part is done.
  void progressed() {
    const double share = static_cast<double>(++done_) / static_cast<double>(parts_);
    const Duration likely = from_seconds(to_seconds(clock_.now() - begun_) / share);
    status_.update([&](MemberStatus& status) { status.expected = std::max(longest_, likely); });
    link_.progressed();
  }
  void end(Duration took) {
    longest_ = std::max(longest_, took);
    status_.update([this](MemberStatus& status) {
      status.computing = false;
      status.expected = longest_;
      status.metrics.add(Metric::steps);
    });
    enter("idleness");
  }

 private:
  void enter(const char* phase) {
    status_.update([&](MemberStatus& status) { status.phase = phase; });
  }

  const Clock& clock_;
  MemberLink& link_;
  StatusBoard status_;
  Duration longest_{};
  TimePoint begun_{};
  std::size_t parts_ = 1;
  std::size_t done_ = 0;
};

/// As `SnapshotReceiver::receive`. Returns the end, too, if this evaluator has replaced another one
/// and the sender has left without noticing it.
std::optional<SnapshotStamp> first_snapshot(World& world, const MemberLink& link,
                                            SnapshotReceiver& snapshots, Replica& replica) {
  try {
    return snapshots.receive(replica);
  } catch (const PeerLost&) {
    if (link.view().number == 1) {
      throw;
    }
  }
  world.sleep_for(verdict_limit);  // throws the error that ends the job, if the sender was lost
  return std::nullopt;
}

void evaluate_snapshots(World& world, MemberLink& link, Replica& replica,
                        const EvaluatorOptions& options) {
  const Role keeper = options.plan.server_keeps_model() ? Role::server : Role::worker;
  const Member& sender = *link.view().find(keeper, Rank{0});
  const TrainConfig& config = options.plan.config();
  TestReport report(world, link);
  const bool recomputes = config.batch_norm == BatchNormStatistics::recomputed;
  const std::size_t batches = (options.dataset.test.samples() + test_batch - 1) / test_batch;
  SnapshotReceiver snapshots(world.transport(), link, sender.node);
  for (auto stamp = first_snapshot(world, link, snapshots, replica); stamp;
       stamp = snapshots.receive(replica)) {
    const TimePoint start = world.now();
    const auto progressed = [&report] { report.progressed(); };
    report.begin(batches + (recomputes ? statistics_batches_of(options.dataset) : 0));
    if (recomputes) {
      recompute_statistics(replica, options.dataset, config.seed, progressed);
    }
    wire::Evaluation evaluation =
        evaluation_of(*stamp, test_model(replica, options.dataset, progressed));
    if (!replica.layout(ReplicaVector::buffers).empty()) {
      evaluation.set_batch_norm(std::string(name_of_value(config.batch_norm)));
    }
    evaluation.set_evaluation_seconds(to_seconds(world.now() - start));
    link.report(evaluation);
    report.end(world.now() - start);
  }
}

}  // namespace

TestResult test_model(Replica& replica, const Dataset& dataset,
                      const std::function<void()>& progressed) {
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
    progressed();
  }
  return {.accuracy = static_cast<double>(sum.correct) / sum.samples,
          .loss = sum.loss_sum / sum.samples};
}

void recompute_statistics(Replica& replica, const Dataset& dataset, std::uint64_t seed,
                          const std::function<void()>& progressed) {
  std::vector<std::uint32_t> indices(dataset.train.samples());
  std::iota(indices.begin(), indices.end(), 0U);
  Random(seed).fork("statistics").shuffle(std::span(indices));
  const std::size_t batch_size = std::min(test_batch, indices.size());
  const std::size_t batches = statistics_batches_of(dataset);
  std::size_t made = 0;
  replica.recompute_statistics([&](Batch& into) {
    if (made > 0) {
      progressed();
    }
    if (made == batches) {
      return false;
    }
    gather(dataset, dataset.train, std::span(indices).subspan(made * batch_size, batch_size), into);
    ++made;
    return true;
  });
}

void run_evaluator(World& world, MemberLink& link, Replica& replica,
                   const EvaluatorOptions& options) {
  link.join();
  try {
    options.before_testing();
    evaluate_snapshots(world, link, replica, options);
  } catch (const std::exception& error) {
    link.fail(error);
  }
  link.leave({});
}

}  // namespace syncopate
