// Goal:   rounds of local steps on data that differ between workers follow the formulas of FedNova
//         and SCAFFOLD, for unequal numbers of steps and samples and with momentum that continues
//         across rounds; on equal data the result of a round is the plain mean.
// Method: the schemes on a quadratic loss in a simulated group are compared with independent plain
//         loops in float64.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "scheme/local_rounds.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate::local_progress_test {
namespace {

constexpr std::size_t dimensions = 4;
constexpr std::size_t rounds = 12;
using Point = std::vector<double>;

/// A worker's data: in step k of a round it sees a batch whose samples all lie at `targets[k]`.
struct WorkerData {
  double share = 0;
  std::vector<Point> targets;               ///< one for each step; the same in every round
  std::vector<std::uint32_t> step_samples;  ///< one for each step; the same in every round
};

struct Task {
  double rate = 0.05;
  double momentum = 0;
  Weights weights = Weights::data;
  std::optional<std::uint32_t> control{};
  double batch = 0;  ///< samples at which a step that is not the first has the whole rate; 0: any
  std::vector<WorkerData> parts;
};

/// Makes a task with one worker for each entry of `steps`, which is its number of steps per round.
/// The steps differ in their numbers of samples.
Task task_of(std::uint64_t seed, const std::vector<std::size_t>& steps) {
  Random random(seed);
  Task task;
  double total = 0;
  for (const std::size_t count : steps) {
    WorkerData part{.share = 0.2 + random.uniform(), .targets = {}, .step_samples = {}};
    total += part.share;
    for (std::size_t step = 0; step < count; ++step) {
      Point target(dimensions);
      for (double& value : target) {
        value = random.normal() + 3 * static_cast<double>(task.parts.size());
      }
      part.targets.push_back(target);
      part.step_samples.push_back(static_cast<std::uint32_t>(1 + random.below(8)));
    }
    task.parts.push_back(part);
  }
  for (WorkerData& part : task.parts) {
    part.share /= total;
  }
  return task;
}

// Training by the schemes under test.

class AfterSteps : public SyncSchedule {
 public:
  AfterSteps(std::size_t steps, double batch) : steps_(steps), batch_(batch) {}
  bool due_after(const LocalStep& /*step*/) override { return ++done_ % steps_ == 0; }
  double rate_factor(std::uint32_t samples) const override {
    return done_ % steps_ == 0 || batch_ == 0 ? 1 : samples / batch_;
  }

 private:
  std::size_t steps_;
  double batch_;
  std::size_t done_ = 0;
};

Batch batch_at(const Point& target, std::uint32_t samples) {
  Batch batch{.shape = {1, 1, dimensions}, .features = {}, .labels = {}};
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    batch.features.insert(batch.features.end(), target.begin(), target.end());
    batch.labels.push_back(0);
  }
  return batch;
}

LocalRounds scheme_for(Group& group, const Task& task) {
  const WorkerData& mine = task.parts[group.rank().value];
  return {group, std::make_unique<AfterSteps>(mine.targets.size(), task.batch),
          LocalRounds::Options{.averaging = {.weights = task.weights, .data_share = mine.share},
                               .local = {.momentum = task.momentum},
                               .control = task.control}};
}

std::vector<float> by_scheme(const Task& task) {
  const auto size = static_cast<std::uint32_t>(task.parts.size());
  const auto models = on_every_rank<std::vector<float>>(size, [&](Group& group) {
    const WorkerData& mine = task.parts[group.rank().value];
    QuadraticReplica replica({.features = dimensions, .classes = 1, .momentum = task.momentum});
    LocalRounds scheme = scheme_for(group, task);
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t step = 0; step < mine.targets.size(); ++step) {
        const std::uint32_t samples = mine.step_samples[step];
        replica.set_learning_rate(task.rate * scheme.rate_factor(samples));
        replica.backward(batch_at(mine.targets[step], samples));
        scheme.after_backward(replica, {.samples = samples});
      }
    }
    const auto params = replica.view(ReplicaVector::params);
    return std::vector<float>(params.begin(), params.end());
  });
  for (const auto& model : models) {
    EXPECT_EQ(model, models.front());
  }
  return models.front();
}

// The same training in plain loops.

struct Worker {
  Point x, velocity, control, sent;
  double velocity_of_one = 0;
  double seen = 0;
};

/// Takes the steps of one round; returns the length ‖a_i‖₁.
double take_steps(Worker& worker, const WorkerData& part, const Task& task,
                  const Point& mean_control) {
  double length = 0;
  double samples = 0;
  Point sum(dimensions, 0.0);
  for (std::size_t step = 0; step < part.targets.size(); ++step) {
    const double n = part.step_samples[step];
    const double factor = step > 0 && task.batch > 0 ? n / task.batch : 1;
    samples += n;
    for (std::size_t d = 0; d < dimensions; ++d) {
      double gradient = worker.x[d] - part.targets[step][d];
      sum[d] += n * gradient;
      if (task.control) gradient += mean_control[d] - worker.control[d];
      worker.velocity[d] = task.momentum * worker.velocity[d] + gradient;
      worker.x[d] -= factor * task.rate * worker.velocity[d];
    }
    worker.velocity_of_one = task.momentum * worker.velocity_of_one + 1;
    length += factor * worker.velocity_of_one;
  }
  worker.seen = std::min(worker.seen + samples, double(task.control.value_or(1)));
  const double share = samples / std::max(samples, worker.seen);
  for (std::size_t d = 0; d < dimensions; ++d) {
    worker.sent[d] = (1 - share) * worker.sent[d] + share * sum[d] / samples;
  }
  return length;
}

double samples_of(const WorkerData& part) {
  return std::accumulate(part.step_samples.begin(), part.step_samples.end(), 0.0);
}

std::vector<double> by_plain_loops(const Task& task) {
  const Point zero(dimensions, 0.0);
  std::vector<Worker> workers(task.parts.size(), {zero, zero, zero, zero});
  Point model = zero;
  Point mean_control = zero;
  double all_samples = 0;
  for (const WorkerData& part : task.parts) all_samples += samples_of(part);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<double> lengths;
    double mean_length = 0;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      lengths.push_back(take_steps(workers[i], task.parts[i], task, mean_control));
      mean_length += task.parts[i].share * lengths.back();
    }
    Point next = model;
    Point next_control = zero;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      const double weight = task.weights == Weights::data
                                ? task.parts[i].share * mean_length / lengths[i]
                                : samples_of(task.parts[i]) / all_samples;
      for (std::size_t d = 0; d < dimensions; ++d) {
        next[d] += weight * (workers[i].x[d] - model[d]);
        next_control[d] += task.parts[i].share * workers[i].sent[d];
      }
    }
    model = next;
    mean_control = next_control;
    for (Worker& worker : workers) {
      worker.x = model;
      worker.control = worker.sent;
    }
  }
  return model;
}

void expect_equal(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t d = 0; d < expected.size(); ++d) {
    EXPECT_NEAR(found[d], expected[d], 2e-5 * std::max(1.0, std::abs(expected[d])))
        << "value " << d;
  }
}

TEST(LocalProgress, OfUnequalStepsIsNormalisedAsByPlainLoops) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (const double momentum : {0.0, 0.9}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", momentum " << momentum);
      Task task = task_of(seed, {1, 4, 13});
      task.momentum = momentum;
      expect_equal(by_scheme(task), by_plain_loops(task));
    }
  }
}

TEST(LocalProgress, OfStepsWithRatesOfTheirOwnIsNormalisedByThem) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Task task = task_of(seed, {1, 4, 13});
    task.momentum = 0.9;
    task.batch = 16;
    expect_equal(by_scheme(task), by_plain_loops(task));
  }
}

TEST(LocalProgress, OfWeightsBySamplesIsNotNormalised) {
  Task task = task_of(3, {1, 4, 13});
  task.weights = Weights::samples;
  expect_equal(by_scheme(task), by_plain_loops(task));
}

/// The minimum of Σ p_i f_i is Σ p_i target_i, independent of the numbers of steps. Weights by
/// samples converge to another point.
TEST(LocalProgress, NormalisedLeadsToTheMinimumOfTheWeightedLoss) {
  Task task = task_of(7, {1, 5, 20});
  task.rate = 0.02;
  Point minimum(dimensions, 0.0);
  for (WorkerData& part : task.parts) {
    std::fill(part.targets.begin(), part.targets.end(), part.targets.front());
    for (std::size_t d = 0; d < dimensions; ++d) {
      minimum[d] += part.share * part.targets.front()[d];
    }
  }
  const auto distance = [&](const Task& of) {
    const std::vector<float> found = by_scheme(of);
    double sum = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
      sum += std::pow(double{found[d]} - minimum[d], 2);
    }
    return std::sqrt(sum);
  };
  const double data = distance(task);
  task.control = 1;
  const double corrected = distance(task);
  task.control.reset();
  task.weights = Weights::samples;
  const double samples = distance(task);
  EXPECT_GT(samples, 2 * data) << data;
  EXPECT_LT(corrected, data);
}

TEST(LocalProgress, OfEqualStepsIsThePlainMean) {
  Task task = task_of(11, {4, 4, 4});
  task.momentum = 0.9;
  for (WorkerData& part : task.parts) {
    part.share = 1.0 / 3;
    std::fill(part.step_samples.begin(), part.step_samples.end(), 3U);
  }
  const std::vector<float> by_data = by_scheme(task);
  task.weights = Weights::samples;
  const std::vector<float> by_samples = by_scheme(task);
  for (std::size_t d = 0; d < dimensions; ++d) {
    EXPECT_NEAR(by_data[d], by_samples[d], 1e-5 * std::abs(by_samples[d]));
  }
}

TEST(ControlVariates, FollowPlainLoops) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (const std::uint32_t memory : {1U, 40U}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", memory " << memory);
      Task task = task_of(seed, {1, 4, 13});
      task.rate = 0.01;
      task.momentum = 0.5;
      task.control = memory;
      expect_equal(by_scheme(task), by_plain_loops(task));
    }
  }
}

TEST(ControlVariates, OfOneWorkerAreSequentialSgd) {
  Task task = task_of(5, {6});
  task.momentum = 0.9;
  const std::vector<float> plain = by_scheme(task);
  task.control = 4;
  EXPECT_EQ(by_scheme(task), plain);
}

TEST(ControlVariates, GoOnFromTheirState) {
  Random random(3);
  const auto draw = [&] {
    std::vector<float> values(5);
    for (float& value : values) {
      value = static_cast<float>(random.normal());
    }
    return values;
  };
  const auto a_round = [&](ControlVariates& control, std::vector<float> gradient,
                           const std::vector<float>& mean) {
    control.correct(gradient, 3);
    std::vector<float> sent(gradient.size());
    control.contribute(sent);
    control.on_mean(mean);
    sent.insert(sent.end(), gradient.begin(), gradient.end());
    return sent;
  };
  ControlVariates straight(8);
  a_round(straight, draw(), draw());
  ControlVariates resumed(8);
  resumed.load(straight.state());
  for (int round = 0; round < 4; ++round) {
    const auto gradient = draw();
    const auto mean = draw();
    EXPECT_EQ(a_round(resumed, gradient, mean), a_round(straight, gradient, mean));
  }
}

}  // namespace
}  // namespace syncopate::local_progress_test
