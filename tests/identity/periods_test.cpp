// Goal:   where slow workers of esync take part in every p-th round only, changes have the weights
//         of their samples, each worker goes on from the newest model, and what holds for rounds of
//         all workers still holds: replicas end equal, every sample counts once, failures cost no
//         more than the failed worker's steps, and a run resumes to the bit.
// Method: a convex problem on a simulated group with periods from a script, compared with plain
//         loops to 1e-5; whole jobs of logistic regression on devices whose speeds differ by 40.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "data/batch.hpp"
#include "pacer/pacer_client.hpp"
#include "scheme/local_rounds.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/support/toy_job.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate::periods_test {
namespace {

using testing::Each;
using testing::Eq;
using namespace std::chrono_literals;

constexpr std::size_t dimensions = 3;
constexpr std::uint64_t rounds = 25;
constexpr double rate = 0.05;
using Point = std::vector<double>;

/// The periods that a worker wants, by its contributions, and the samples of its steps, one in each
/// of its rounds.
struct Script {
  std::vector<std::uint32_t> wanted;
  std::vector<std::uint32_t> samples;
  Point target;
};

/// Synchronizes after each step, and adopts the periods of a script.
class Scripted : public SyncSchedule {
 public:
  explicit Scripted(const Script& script) : script_(script) {}

  bool due_after(const LocalStep& /*step*/) override {
    const std::uint32_t wanted = script_.wanted[contributions_++ % script_.wanted.size()];
    period_ = adopted_period(round_, 1, wanted);
    round_ += period_;
    return true;
  }
  std::uint32_t period() const override { return period_; }

 private:
  const Script& script_;
  std::size_t contributions_ = 0;
  std::uint64_t round_ = 1;
  std::uint32_t period_ = 1;
};

Batch batch_at(const Point& target, std::uint32_t samples) {
  Batch batch{.shape = {1, 1, dimensions}, .features = {}, .labels = {}};
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    batch.features.insert(batch.features.end(), target.begin(), target.end());
    batch.labels.push_back(0);
  }
  return batch;
}

/// The rounds of a worker: by round, its samples.
std::map<std::uint64_t, std::uint32_t> plan_of(const Script& script) {
  std::map<std::uint64_t, std::uint32_t> plan;
  std::size_t contribution = 0;
  for (std::uint64_t round = 1; round <= rounds; ++contribution) {
    plan[round] = script.samples[contribution % script.samples.size()];
    round += adopted_period(round, 1, script.wanted[contribution % script.wanted.size()]);
  }
  return plan;
}

/// What a worker has after its last round.
struct Trained {
  std::vector<float> params;
  std::uint64_t samples = 0;  ///< of all workers, as the rounds of this one say
  std::uint64_t last = 0;
};

std::vector<Trained> by_scheme(const std::vector<Script>& scripts, const RuleSpec& outer,
                               double outer_rate) {
  const auto size = static_cast<std::uint32_t>(scripts.size());
  return on_every_rank<Trained>(size, [&](Group& group) {
    const Script& mine = scripts[group.rank().value];
    QuadraticReplica replica({.features = dimensions, .classes = 1, .momentum = 0});
    LocalRounds scheme(
        group, std::make_unique<Scripted>(mine),
        LocalRounds::Options{
            .averaging = {.periods = true}, .outer = outer, .outer_rate = outer_rate});
    Trained trained;
    for (const auto& [round, samples] : plan_of(mine)) {
      replica.set_learning_rate(rate);
      replica.backward(batch_at(mine.target, samples));
      const Outcome outcome = scheme.after_backward(replica, {.samples = samples});
      EXPECT_EQ(outcome.sync_round->round.value, round);
      trained.samples += outcome.sync_round->samples;
      trained.last = round;
    }
    const auto params = replica.view(ReplicaVector::params);
    trained.params.assign(params.begin(), params.end());
    return trained;
  });
}

/// The formula in plain loops: w += outer(Σ u_i Δ_i), u_i = n_i / N_i for a worker that has missed
/// rounds, N_i the samples of all since it left; the others share the rest.
class Formula {
 public:
  Formula(const std::vector<Script>& scripts, double momentum, double outer_rate)
      : scripts_(scripts), momentum_(momentum), outer_rate_(outer_rate) {
    for (const Script& script : scripts) workers_.push_back({.plan = plan_of(script)});
  }

  /// After each round, from the first model on.
  const std::vector<Point>& models() const { return models_; }

  void complete(std::uint64_t round) {
    const std::map<std::size_t, double> weights = weights_in(round);
    double total = 0;
    for (const auto& [i, weight] : weights) total += weight;
    Point model = models_.back();
    for (std::size_t d = 0; d < dimensions; ++d) {
      double change = 0;
      for (const auto& [i, weight] : weights) {
        change += weight / total * -rate * (workers_[i].start[d] - scripts_[i].target[d]);
      }
      velocity_[d] = momentum_ * velocity_[d] + change;
      model[d] += outer_rate_ * (momentum_ > 0 ? velocity_[d] : change);
    }
    for (const auto& [i, weight] : weights) {
      samples_of_round_[round] += workers_[i].plan[round];
      workers_[i].last = round;
      workers_[i].start = model;
    }
    models_.push_back(model);
  }

 private:
  struct Worker {
    std::map<std::uint64_t, std::uint32_t> plan;
    std::uint64_t last = 0;
    Point start = Point(dimensions, 0.0);  ///< the model that it left with
  };

  /// The weights of a round's workers, up to a common factor.
  std::map<std::size_t, double> weights_in(std::uint64_t round) {
    double here = 0;  // the samples of those that have missed none
    for (Worker& worker : workers_) {
      here += worker.last == round - 1 && worker.plan.contains(round) ? worker.plan[round] : 0;
    }
    std::map<std::size_t, double> weights;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].plan.contains(round)) {
        const double missed = samples_between(workers_[i].last, round);
        weights[i] = workers_[i].plan[round] * (missed > 0 ? here / (here + missed) : 1);
      }
    }
    return weights;
  }

  double samples_between(std::uint64_t last, std::uint64_t round) const {
    double samples = 0;
    for (std::uint64_t missed = last + 1; missed < round; ++missed) {
      samples += samples_of_round_[missed];
    }
    return samples;
  }

  const std::vector<Script>& scripts_;
  double momentum_;
  double outer_rate_;
  std::vector<Worker> workers_;
  std::vector<double> samples_of_round_ = std::vector<double>(rounds + 1, 0.0);
  std::vector<Point> models_{Point(dimensions, 0.0)};
  Point velocity_ = Point(dimensions, 0.0);
};

std::vector<Point> by_formula(const std::vector<Script>& scripts, double momentum,
                              double outer_rate) {
  Formula formula(scripts, momentum, outer_rate);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    formula.complete(round);
  }
  return formula.models();
}

std::vector<Script> scripts() {
  return {{.wanted = {1}, .samples = {4, 5, 6}, .target = {1, 2, 3}},
          {.wanted = {1}, .samples = {7}, .target = {-1, 0, 4}},
          {.wanted = {4, 4, 2}, .samples = {3, 2}, .target = {5, 5, 5}},
          {.wanted = {8, 1}, .samples = {1, 9}, .target = {-2, 7, 0}},
          {.wanted = {2}, .samples = {2}, .target = {0, -3, 1}}};
}

void expect_the_formula(const RuleSpec& outer, double momentum, double outer_rate) {
  const std::vector<Script> workers = scripts();
  const std::vector<Trained> trained = by_scheme(workers, outer, outer_rate);
  const std::vector<Point> models = by_formula(workers, momentum, outer_rate);
  std::vector<std::uint64_t> samples(rounds + 1, 0);
  for (const Script& script : workers) {
    for (const auto& [round, count] : plan_of(script)) samples[round] += count;
  }
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    const Point& model = models[trained[rank].last];
    EXPECT_LE(relative_distance(trained[rank].params, {model.begin(), model.end()}), 1e-5)
        << "worker " << rank << " after round " << trained[rank].last;
    std::uint64_t until = 0;
    for (std::uint64_t round = 1; round <= trained[rank].last; ++round) until += samples[round];
    EXPECT_EQ(trained[rank].samples, until) << "worker " << rank;
  }
}

TEST(Periods, WeighAChangeByItsSamplesAmongThoseOfAllSinceTheWorkerLeft) {
  expect_the_formula({.name = "sgd", .momentum = 0}, 0, 1);
}

TEST(Periods, MoveTheModelByTheOuterOptimizerOnEveryWorker) {
  expect_the_formula({.name = "momentum", .momentum = 0.6}, 0.6, 0.5);
}

/// Devices that take 1, 1, 3 and 40 s for a mini-batch: two samples take the slow one five rounds.
constexpr const char* devices =
    "name = \"periods\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"middling\"\nseconds_per_batch = "
    "3.0\njitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = 40.0\njitter = 0.05\n";

TrainConfig config_of(const std::string& name) {
  TrainConfig config = toy_config(fresh_folder("periods-" + name));
  config.scheme = "esync";
  config.workers = 4;
  config.epochs = 8;
  config.cluster = cluster_of(config.run_dir, devices);
  return config;
}

void expect_equal_replicas(const SimulatedJob& job) {
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  EXPECT_THAT(job.buffers(), Each(Eq(job.buffers()[0])));
}

TEST(Periods, KeepEveryDeviceBusyInRoundsOfTheFastOnes) {
  TrainConfig config = config_of("busy");
  config.checkpoint_every = {Every::Unit::epochs, 8};  // workers wait at each checkpoint
  SimulatedJob job = toy_job(config);
  job.run();
  expect_equal_replicas(job);
  std::uint64_t samples = 0;
  for (const auto& worker : job.summary().at("workers")) {
    samples += worker.at("samples").get<std::uint64_t>();
    EXPECT_GE(worker.at("computing_time_ratio"), 0.97) << worker;
  }
  EXPECT_EQ(job.summary().at("samples"), samples);
  EXPECT_GE(job.summary().at("accuracy"), 0.75);
  // A round takes as long as a step of the fast devices, and what these steps differ by.
  const double seconds = job.summary().at("training_seconds");
  EXPECT_GE(job.summary().at("rounds").get<double>(), 0.7 * seconds);
}

TEST(Periods, LeaveRoundsOfAllWorkersIfTheyMayNotBeLonger) {
  TrainConfig config = config_of("one");
  set(config, "max-period", 1);
  SimulatedJob job = toy_job(config);
  job.run();
  expect_equal_replicas(job);
  const double seconds = job.summary().at("training_seconds");
  EXPECT_LE(job.summary().at("rounds").get<double>(), seconds / 4);  // two samples take 5 s
}

TEST(Periods, OfOneAreTheRoundsOfAllWorkersBitForBit) {
  TrainConfig config = config_of("equal");
  config.workers = 3;
  config.cluster = cluster_of(config.run_dir, equal_speeds);
  SimulatedJob any = toy_job(config);
  any.run();
  config.run_dir = fresh_folder("periods-equal-one");
  config.cluster = cluster_of(config.run_dir, equal_speeds);
  set(config, "max-period", 1);
  SimulatedJob one = toy_job(config);
  one.run();
  EXPECT_EQ(any.params(), one.params());
  EXPECT_EQ(any.summary().at("rounds"), one.summary().at("rounds"));
  EXPECT_EQ(any.summary().at("samples"), one.summary().at("samples"));
}

TEST(Periods, EndWithTheEpochsOfTheJob) {
  for (const double round_time : {0.5, 1.0, 7.0}) {
    SCOPED_TRACE(testing::Message() << "rounds of " << round_time);
    TrainConfig config = config_of("epochs");
    set(config, "round-time", round_time);
    SimulatedJob job = toy_job(config);
    job.run();
    expect_equal_replicas(job);
    EXPECT_GE(job.summary().at("samples"), 8 * 600);
    // The others wait for two steps of the slow device, of up to 8 s: the one under way, and the
    // one after the round in which all learn that it was the last but one.
    EXPECT_LE(job.summary().at("samples"), 8 * 600 + 2 * 8 * 2.4 * 16);
  }
}

TEST(Periods, OutliveAnyWorkerButTheFirst) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const TrainConfig config = config_of("losses");
    SimulatedJob job = toy_job(config, /*resume=*/false,
                               {.link = {.bandwidth = 2e5, .latency = 20ms}, .jitter = 1});
    std::vector<std::uint32_t> killed;
    for (const std::uint32_t worker : {1, 2, 3}) {
      if (random.uniform() < 0.4) {
        killed.push_back(worker);
        job.simulation().at(TimePoint(from_seconds(0.5 + 100 * random.uniform())), [&job, worker] {
          job.simulation().kill(SimulatedJob::node_of_worker(Rank{worker}));
        });
      }
    }
    job.run();
    ASSERT_EQ(job.failure(), nullptr);
    EXPECT_EQ(job.summary().at("ended_because"), "every epoch is done");
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(job.errors()[rank], "");
      if (std::ranges::find(killed, rank) == killed.end()) {
        EXPECT_EQ(job.params()[rank], job.params()[0]) << "worker " << rank;
      }
    }
  }
}

TEST(Periods, TakeAnOuterOptimizer) {
  TrainConfig config = config_of("outer");
  config.epochs = 20;
  set(config, "outer-optimizer", "nesterov");
  set(config, "global-lr", 0.3);
  SimulatedJob job = toy_job(config);
  job.run();
  expect_equal_replicas(job);
  EXPECT_GE(job.summary().at("accuracy"), 0.75);
}

}  // namespace
}  // namespace syncopate::periods_test
