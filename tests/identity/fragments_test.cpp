// Goal:   where a round of esync synchronizes one fragment of the model, each fragment moves by
//         the mean of its changes since its last round, weighted by the samples since; replicas end
//         equal, failures cost no more than the failed worker's steps, and a run resumes exactly.
// Method: a convex problem on a simulated group, a round after each step, compared with plain loops
//         to 1e-5; whole jobs of logistic regression on devices of two speeds.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "checkpoint/checkpoint.hpp"
#include "data/batch.hpp"
#include "scheme/local_rounds.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/support/toy_job.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate::fragments_test {
namespace {

using testing::Each;
using testing::Eq;
using namespace std::chrono_literals;

constexpr std::size_t dimensions = 7;
constexpr std::uint64_t steps = 23;
constexpr double rate = 0.05;
using Point = std::vector<double>;

struct Worker {
  std::uint32_t samples = 1;  ///< of each step
  Point target;
};

std::vector<Worker> workers() {
  return {{.samples = 4, .target = {1, 2, 3, 4, 5, 6, 7}},
          {.samples = 1, .target = {-1, 0, 4, 2, 2, 9, -3}},
          {.samples = 3, .target = {5, 5, 5, -5, 0, 1, 2}}};
}

Batch batch_of(const Worker& worker) {
  Batch batch{.shape = {1, 1, dimensions}, .features = {}, .labels = {}};
  for (std::uint32_t sample = 0; sample < worker.samples; ++sample) {
    batch.features.insert(batch.features.end(), worker.target.begin(), worker.target.end());
    batch.labels.push_back(0);
  }
  return batch;
}

/// The worker with one sample has none in every third step, and none in the first ones.
std::uint32_t samples_in(const Worker& worker, std::uint64_t step) {
  return worker.samples == 1 && (step < 4 || step % 3 == 0) ? 0 : worker.samples;
}

/// The replicas after the last step.
std::vector<std::vector<float>> by_scheme(std::uint32_t fragments, double momentum) {
  const auto size = static_cast<std::uint32_t>(workers().size());
  return on_every_rank<std::vector<float>>(size, [&](Group& group) {
    const Worker mine = workers()[group.rank().value];
    QuadraticReplica replica({.features = dimensions, .classes = 1, .momentum = 0});
    LocalRounds scheme(group, std::make_unique<FixedSchedule>(1),
                       LocalRounds::Options{.outer = {.name = momentum > 0 ? "momentum" : "sgd",
                                                      .momentum = momentum},
                                            .outer_rate = 0.5,
                                            .overlap = true,
                                            .fragments = fragments});
    for (std::uint64_t step = 1; step <= steps; ++step) {
      replica.set_learning_rate(samples_in(mine, step) > 0 ? rate : 0);
      replica.backward(batch_of(mine));
      scheme.after_backward(replica, {.samples = samples_in(mine, step)});
    }
    const auto params = replica.view(ReplicaVector::params);
    return std::vector<float>(params.begin(), params.end());
  });
}

/// The formula in plain loops. The result of a round arrives in the next step, after its local step
/// and before its change.
class Formula {
 public:
  Formula(std::uint32_t fragments, double momentum)
      : fragments_(fragments),
        momentum_(momentum),
        behind_(all_.size(), std::vector<double>(fragments, 0.0)) {}

  const std::vector<Point>& replicas() const { return replicas_; }

  void step(std::uint64_t number) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      take_local_step(i, samples_in(all_[i], number));
    }
    for (std::size_t d = begin_; d < end_; ++d) {
      apply_change(d);
    }
    contribute(number % fragments_);
  }

 private:
  void take_local_step(std::size_t i, std::uint32_t samples) {
    for (std::size_t d = 0; samples > 0 && d < dimensions; ++d) {
      replicas_[i][d] -= rate * (replicas_[i][d] - all_[i].target[d]);
    }
    for (double& count : behind_[i]) count += samples;
  }

  void apply_change(std::size_t d) {
    const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    double change = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      change += weights_[i] / total * (contributed_[i][d] - model_[d]);
    }
    velocity_[d] = momentum_ * velocity_[d] + change;
    model_[d] += 0.5 * velocity_[d];
    for (std::size_t i = 0; i < all_.size(); ++i) {
      replicas_[i][d] += model_[d] - contributed_[i][d];
    }
  }

  void contribute(std::uint64_t fragment) {
    begin_ = dimensions * fragment / fragments_;
    end_ = dimensions * (fragment + 1) / fragments_;
    contributed_ = replicas_;
    weights_.clear();
    for (std::vector<double>& samples : behind_) {
      weights_.push_back(std::exchange(samples[fragment], 0));
    }
  }

  const std::vector<Worker> all_ = workers();
  std::uint32_t fragments_;
  double momentum_;
  std::vector<Point> replicas_ = std::vector<Point>(all_.size(), Point(dimensions, 0.0));
  std::vector<Point> contributed_ = replicas_;
  std::vector<std::vector<double>> behind_;  ///< samples since a fragment's last round, by worker
  Point model_ = Point(dimensions, 0.0);
  Point velocity_ = Point(dimensions, 0.0);
  std::vector<double> weights_;
  std::size_t begin_ = 0;  ///< of the fragment that is under way
  std::size_t end_ = 0;
};

std::vector<Point> by_formula(std::uint32_t fragments, double momentum) {
  Formula formula(fragments, momentum);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    formula.step(step);
  }
  return formula.replicas();
}

TEST(Fragments, MoveByTheMeanOfTheirChangesSinceTheirLastRounds) {
  for (const std::uint32_t fragments : {1U, 2U, 3U, 7U}) {
    for (const double momentum : {0.0, 0.6}) {
      SCOPED_TRACE(testing::Message() << fragments << " fragments, momentum " << momentum);
      const auto trained = by_scheme(fragments, momentum);
      const auto expected = by_formula(fragments, momentum);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::vector<float> replica(expected[i].begin(), expected[i].end());
        EXPECT_LE(relative_distance(trained[i], replica), 1e-5) << "worker " << i;
      }
    }
  }
}

/// More fragments than parameters leave rounds without values.
TEST(Fragments, MayBeMoreThanParameters) {
  const auto trained = by_scheme(10, 0);
  const auto expected = by_formula(10, 0);
  EXPECT_LE(relative_distance(trained[0], {expected[0].begin(), expected[0].end()}), 1e-5);
}

constexpr const char* devices =
    "name = \"fragments\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = "
    "3.0\njitter = 0.05\n";

TrainConfig config_of(const std::string& name) {
  TrainConfig config = toy_config(fresh_folder("fragments-" + name));
  config.scheme = "esync";
  config.workers = 3;
  config.epochs = 8;
  config.cluster = cluster_of(config.run_dir, devices);
  set(config, "fragments", 4);
  return config;
}

TEST(Fragments, LeaveEqualReplicasAtTheEnd) {
  for (const std::string outer : {"sgd", "nesterov", "gpa"}) {
    for (const std::string compress : {"none", "topk:0.1/2bit"}) {
      SCOPED_TRACE(testing::Message() << outer << ", compress " << compress);
      TrainConfig config = config_of("end");
      config.compress = Compression::parse(compress);
      set(config, "outer-optimizer", outer);
      SimulatedJob job = toy_job(config);
      job.run();
      EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
      EXPECT_EQ(job.params()[0], last_checkpoint(config).values("weight")) << "what is saved";
      EXPECT_THAT(job.buffers(), Each(Eq(job.buffers()[0])));
      EXPECT_GE(job.summary().at("samples"), 8 * 600);
      EXPECT_GE(job.summary().at("accuracy"), 0.75);
    }
  }
}

TEST(Fragments, OutliveAnyWorkerButTheFirst) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    SimulatedJob job = toy_job(config_of("losses"), /*resume=*/false,
                               {.link = {.bandwidth = 2e5, .latency = 20ms}, .jitter = 1});
    const auto worker = static_cast<std::uint32_t>(1 + random.below(2));
    job.simulation().at(TimePoint(from_seconds(0.5 + 60 * random.uniform())), [&job, worker] {
      job.simulation().kill(SimulatedJob::node_of_worker(Rank{worker}));
    });
    job.run();
    ASSERT_EQ(job.failure(), nullptr);
    EXPECT_EQ(job.summary().at("ended_because"), "every epoch is done");
    EXPECT_EQ(job.params()[3 - worker], job.params()[0]);
  }
}

}  // namespace
}  // namespace syncopate::fragments_test
