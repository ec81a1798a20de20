// Goal:   the schemes with a parameter server train the same model as schemes that are known to be
//         right, for options that make them equivalent; a server's state resumes exactly; a job
//         continues without a worker that died.
// Method: whole jobs of logistic regression in the simulator; their last checkpoints are compared
//         bit for bit if both jobs add in the same order, otherwise to 1e-5 relative.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>

#include "checkpoint/checkpoint.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::server_job_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Devices that take 1, 1 and 3 s for a mini-batch, so that workers drift apart.
constexpr const char* unequal =
    "name = \"unequal\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = "
    "3.0\n";

TrainConfig config_of(const std::string& scheme, const std::string& name) {
  TrainConfig config = toy_config(fresh_folder(name));
  config.scheme = scheme;
  return config;
}

std::vector<float> trained(const TrainConfig& config) {
  SimulatedJob job = toy_job(config);
  job.run();
  return last_checkpoint(config).values("weight");
}

TrainConfig alone(TrainConfig config) {
  config.workers = 1;
  return config;
}

TEST(ServerIdentity, AsgdOfOneWorkerIsSequential) {
  const auto sequential = trained(alone(config_of("local", "local")));
  EXPECT_EQ(trained(alone(config_of("asgd", "asgd"))), sequential);
}

/// A worker reports the mean loss of its last step, a server that of the steps since its last
/// status. Here the job ends before any status, so both must report the loss of the only step.
TEST(ServerIdentity, TheLossOfAJobThatEndsBeforeAnyStatusIsTold) {
  const auto loss_of = [](const std::string& scheme) {
    TrainConfig config = alone(config_of(scheme, scheme));
    config.max_steps = 1;
    SimulatedJob job = toy_job(config);
    job.run();
    return job.summary().at("loss").get<double>();
  };
  EXPECT_DOUBLE_EQ(loss_of("asgd"), loss_of("local"));
}

/// Gradients of the first steps are longer than this limit, later ones are not.
TEST(ServerIdentity, AWorkerClipsTheGradientThatItPushes) {
  const auto clipped = [](const std::string& scheme, const std::string& name) {
    TrainConfig config = alone(config_of(scheme, name));
    config.optimizer = Optimizer::sgd;
    config.clip_norm = 0.3;
    return config;
  };
  const auto sequential = trained(clipped("local", "clipped"));
  EXPECT_LT(relative_distance(trained(clipped("asgd", "clipped-asgd")), sequential), 1e-5);
  TrainConfig downpour = clipped("downpour", "clipped-downpour");
  set(downpour, "server-optimizer", "sgd");
  set(downpour, "server-learning-rate", *downpour.learning_rate);
  set(downpour, "push-every", 2);
  set(downpour, "fetch-every", 2);
  EXPECT_LT(relative_distance(trained(downpour), sequential), 1e-5);
  TrainConfig racy = clipped("nbssgd", "clipped-racy");
  racy.batch_size = 20;  // 600 samples in 30 batches
  set(racy, "mini-batches", 1);
  set(racy, "commit", "racy");
  set(racy, "aggregate", "server");
  TrainConfig same_batch = clipped("local", "clipped-20");
  same_batch.batch_size = 20;
  EXPECT_LT(relative_distance(trained(racy), trained(same_batch)), 1e-5);
  TrainConfig without = clipped("local", "without");
  without.clip_norm.reset();
  EXPECT_GT(relative_distance(trained(without), sequential), 1e-3);
}

TEST(ServerIdentity, ShardsMakeNoDifference) {
  TrainConfig config = alone(config_of("asgd", "shards"));
  config.servers = 3;
  EXPECT_EQ(trained(config), trained(alone(config_of("local", "local"))));
}

TEST(ServerIdentity, DownpourOfOneWorkerIsSequential) {
  TrainConfig sequential = alone(config_of("local", "local"));
  sequential.optimizer = Optimizer::sgd;
  TrainConfig config = alone(config_of("downpour", "downpour"));
  config.optimizer = Optimizer::sgd;
  set(config, "server-optimizer", "sgd");
  set(config, "server-learning-rate", *config.learning_rate);
  set(config, "push-every", 4);
  set(config, "fetch-every", 8);
  EXPECT_LT(relative_distance(trained(config), trained(sequential)), 1e-5);
}

TEST(ServerIdentity, DownpourOfEveryStepIsAsgd) {
  TrainConfig asgd = config_of("asgd", "asgd");
  asgd.optimizer = Optimizer::sgd;
  asgd.cluster = cluster_of(asgd.run_dir, unequal);
  TrainConfig downpour = config_of("downpour", "downpour");
  downpour.optimizer = Optimizer::sgd;
  set(downpour, "server-optimizer", "sgd");
  set(downpour, "server-learning-rate", *downpour.learning_rate);
  set(downpour, "push-every", 1);
  set(downpour, "fetch-every", 1);
  downpour.cluster = asgd.cluster;
  EXPECT_EQ(trained(downpour), trained(asgd));
}

TEST(ServerIdentity, AsgdDropsLateGradients) {
  TrainConfig any = config_of("asgd", "any-delay");
  any.cluster = cluster_of(any.run_dir, unequal);
  const auto with_limit = [&](std::uint32_t limit) {
    TrainConfig config = any;
    config.run_dir = fresh_folder(fmt::format("max-delay-{}", limit));
    set(config, "max-delay", limit);
    return config;
  };
  EXPECT_EQ(trained(with_limit(1000)), trained(any));

  for (const std::uint32_t limit : {1U, 2U}) {
    SCOPED_TRACE(limit);
    SimulatedJob job = toy_job(with_limit(limit));
    job.run();
    const auto& workers = job.summary().at("workers");
    const auto dropped = [&](std::size_t rank) {
      return workers.at(rank).at("dropped_gradients").get<std::uint64_t>();
    };
    EXPECT_LT(job.summary().at("staleness").at("max").get<double>(), limit);
    EXPECT_GT(dropped(2), workers.at(2).at("steps").get<std::uint64_t>() / 2) << "the slow worker";
  }
}

TEST(ServerIdentity, AsgdWithATableOfGradientsOfOneWorkerIsAsgd) {
  TrainConfig plain = config_of("asgd", "asgd");
  plain.workers = 1;
  TrainConfig table = plain;
  table.run_dir = fresh_folder("gradient-table");
  set(table, "gradient-table", true);
  EXPECT_EQ(trained(table), trained(plain));
}

TEST(ServerIdentity, AsgdWithATableOfGradientsBoundsDelays) {
  TrainConfig config = config_of("asgd", "gradient-table");
  config.cluster = cluster_of(config.run_dir, unequal);
  set(config, "gradient-table", true);
  SimulatedJob job = toy_job(config);
  job.run();
  const auto& workers = job.summary().at("workers");
  EXPECT_GT(workers.at(0).at("steps").get<std::uint64_t>(),
            2 * workers.at(2).at("steps").get<std::uint64_t>());
  EXPECT_LE(job.summary().at("staleness").at("max").get<double>(), 4) << "2 P - 2";
}

TEST(ServerIdentity, DcAsgdWithoutLambdaIsAsgd) {
  TrainConfig asgd = config_of("asgd", "asgd");
  asgd.cluster = cluster_of(asgd.run_dir, unequal);
  for (const std::string compensation : {"constant", "adaptive"}) {
    TrainConfig config = config_of("dc-asgd", "dc-asgd");
    config.cluster = asgd.cluster;
    set(config, "compensation", compensation);
    set(config, "lambda", 0);
    EXPECT_EQ(trained(config), trained(asgd)) << compensation;
  }
}

TEST(ServerIdentity, SspWithoutSlackIsSsgd) {
  TrainConfig ssgd = config_of("ssgd", "ssgd");
  ssgd.optimizer = Optimizer::sgd;
  TrainConfig ssp = config_of("ssp", "ssp");
  ssp.optimizer = Optimizer::sgd;
  set(ssp, "slack", 0);
  ssp.learning_rate = *ssgd.learning_rate / ssp.workers;
  ssgd.batch_size = ssp.batch_size = 20;  // 600 samples in three parts of ten batches
  ssp.cluster = cluster_of(ssp.run_dir, unequal);
  EXPECT_LT(relative_distance(trained(ssp), trained(ssgd)), 1e-5);
  ssp.servers = 2;
  ssp.run_dir = fresh_folder("ssp-shards");
  EXPECT_LT(relative_distance(trained(ssp), trained(ssgd)), 1e-5);
}

/// Each worker has 200 of the 600 samples, so its 13th batch has 8 samples instead of 16. The three
/// partial batches are a full step of ssgd, but only half a step of ssp, which adds gradients by
/// their samples. With uniform weights they are a full step of ssp, too.
TEST(ServerIdentity, APartialBatchCountsItsSamples) {
  const auto after = [](const std::string& scheme, std::uint64_t steps,
                        const std::string& weights) {
    TrainConfig config = config_of(scheme, "partial-" + scheme);
    config.optimizer = Optimizer::sgd;
    config.max_steps = steps;
    set(config, "weights", weights);
    if (scheme == "ssp") {
      set(config, "slack", 0);
      config.learning_rate = *config.learning_rate / config.workers;
    }
    return trained(config);
  };
  const std::vector<float> before = after("ssgd", 12, "samples");
  const std::vector<float> whole = after("ssgd", 13, "samples");
  std::vector<float> half = before;
  for (std::size_t i = 0; i < half.size(); ++i) {
    half[i] += (whole[i] - before[i]) / 2;
  }
  EXPECT_LT(relative_distance(after("ssp", 13, "samples"), half), 1e-5);
  EXPECT_LT(relative_distance(after("ssp", 13, "uniform"), whole), 1e-5);
  EXPECT_GT(relative_distance(half, whole), 1e-4);
}

/// Batches of 8, 16 and 32 samples.
constexpr const char* unequal_batches =
    "name = \"batches\"\nbatch_samples = 16\n[[devices]]\nname = \"a\"\nseconds_per_batch = "
    "1.0\nbatch_size = "
    "8\n[[devices]]\nname = \"b\"\nseconds_per_batch = 1.0\n[[devices]]\nname = "
    "\"c\"\nseconds_per_batch = "
    "1.0\nbatch_size = 32\n";

/// A gradient has the same weight in the mean on a server as in the mean by an allreduce.
TEST(ServerIdentity, BackupTakesTheWeightsOfSsgd) {
  for (const std::string weights : {"samples", "uniform"}) {
    TrainConfig ssgd = config_of("ssgd", "ssgd-weights");
    ssgd.cluster = cluster_of(ssgd.run_dir, unequal_batches);
    set(ssgd, "weights", weights);
    TrainConfig backup = config_of("backup", "backup-weights");
    backup.cluster = ssgd.cluster;
    set(backup, "backup-workers", 0);
    set(backup, "weights", weights);
    EXPECT_LT(relative_distance(trained(backup), trained(ssgd)), 1e-5) << weights;
  }
}

/// Each worker takes one step from the same model. Whether a server or shared memory keeps the
/// model, it moves by the weighted sum of the gradients.
TEST(ServerIdentity, UnequalBatchesWeighTheSameInEveryTopology) {
  const auto after_a_step = [](const std::string& scheme, const std::string& aggregate,
                               const std::string& weights) {
    TrainConfig config = config_of(scheme, "weights-" + scheme + aggregate);
    config.cluster = cluster_of(config.run_dir, unequal_batches);
    config.optimizer = Optimizer::sgd;
    set(config, "weights", weights);
    set(config, "commit", "racy");
    set(config, "aggregate", aggregate);
    set(config, "mini-batches", 1);
    config.max_steps = 1;
    return trained(config);
  };
  const std::vector<float> by_samples = after_a_step("asgd", "server", "samples");
  const std::vector<float> uniform = after_a_step("asgd", "server", "uniform");
  EXPECT_GT(relative_distance(uniform, by_samples), 1e-3);
  const std::pair<const char*, const char*> others[] = {
      {"hogwild", "auto"}, {"nbssgd", "auto"}, {"nbssgd", "server"}};
  for (const auto& [scheme, aggregate] : others) {
    SCOPED_TRACE(std::string(scheme) + ", aggregate " + aggregate);
    EXPECT_LT(relative_distance(after_a_step(scheme, aggregate, "samples"), by_samples), 1e-5);
    EXPECT_LT(relative_distance(after_a_step(scheme, aggregate, "uniform"), uniform), 1e-5);
  }
}

TEST(ServerIdentity, BackupWithoutBackupsIsSsgd) {
  const auto ssgd = trained(config_of("ssgd", "ssgd"));
  for (const std::uint32_t servers : {1U, 3U}) {
    TrainConfig backup = config_of("backup", "backup");
    set(backup, "backup-workers", 0);
    backup.servers = servers;
    EXPECT_LT(relative_distance(trained(backup), ssgd), 1e-5) << servers << " servers";
  }
}

TEST(ServerIdentity, SumsOfAServerAreThoseOfTheRing) {
  const auto ring = trained(config_of("ssgd", "ring"));
  for (const std::uint32_t servers : {1U, 3U}) {
    TrainConfig config = config_of("ssgd", "server");
    set(config, "aggregate", "server");
    config.servers = servers;
    SimulatedJob job = toy_job(config);
    job.run();
    EXPECT_THAT(job.params(), testing::Each(testing::Eq(job.params()[0])));
    EXPECT_LT(relative_distance(job.params()[0], ring), 1e-5) << servers << " servers";
  }
}

TEST(ServerIdentity, HogwildOfOneWorkerIsSequential) {
  const auto sequential = trained(alone(config_of("local", "local")));
  EXPECT_LT(relative_distance(trained(alone(config_of("hogwild", "hogwild"))), sequential), 1e-5);
}

TEST(ServerJob, ResumingOneWorkerEqualsNotHavingStopped) {
  for (const std::string scheme : {"asgd", "dc-asgd", "ssp"}) {
    TrainConfig whole = alone(config_of(scheme, "whole"));
    whole.servers = 2;
    trained(whole);
    TrainConfig cut = alone(config_of(scheme, "cut"));
    cut.servers = 2;
    cut.max_steps = 50;  // in the middle of the second epoch
    trained(cut);
    cut.max_steps.reset();
    toy_job(cut, /*resume=*/true).run();
    const Safetensors one = last_checkpoint(cut);
    const Safetensors other = last_checkpoint(whole);
    ASSERT_EQ(one.names(), other.names());
    for (const std::string& name : one.names()) {
      EXPECT_EQ(one.values(name), other.values(name)) << scheme << ": " << name;
    }
  }
}

TEST(ServerJob, UnequalDevicesAllComputeUnderAsgd) {
  TrainConfig config = config_of("asgd", "throughput");
  config.cluster = cluster_of(config.run_dir, unequal);
  SimulatedJob job = toy_job(config);
  job.run();
  const auto& summary = job.summary();
  EXPECT_GT(summary.at("cluster_efficiency"), 0.97);  // the slow device takes the last step alone
  EXPECT_GE(summary.at("samples"), 4 * 600);
  EXPECT_LT(summary.at("samples"), 4 * 600 + 3 * 16);
  EXPECT_EQ(summary.at("evaluations").size(), 4U);  // one per epoch; the last tests the last model
  for (const auto& worker : summary.at("workers")) {
    EXPECT_GT(worker.at("computing_time_ratio"), 0.97) << worker;
  }
  // Between two updates of a fast worker comes one of the other fast worker; between two updates of
  // the slow worker come many.
  EXPECT_EQ(summary.at("workers")[0].at("staleness").at("median"), 1);
  EXPECT_NEAR(summary.at("workers")[2].at("staleness").at("median"), 6, 1);
}

TEST(ServerJob, SspHoldsFastWorkersBackAndAsgdDoesNot) {
  TrainConfig config = config_of("ssp", "bound");
  set(config, "slack", 2);
  config.cluster = cluster_of(config.run_dir, unequal);
  SimulatedJob job = toy_job(config);
  job.run();
  const auto& workers = job.summary().at("workers");
  EXPECT_NEAR(workers[0].at("wait_ratio"), 0.65, 0.05);
  EXPECT_LT(workers[2].at("wait_ratio"), 0.02);
}

TEST(ServerJob, BackupLeavesTheSlowestOut) {
  TrainConfig config = config_of("backup", "slowest");
  config.cluster = cluster_of(config.run_dir, unequal);
  config.servers = 2;
  SimulatedJob job = toy_job(config);
  job.run();
  const auto& summary = job.summary();
  EXPECT_GT(summary.at("workers")[2].at("dropped_gradients"), 0);
  EXPECT_EQ(summary.at("dropped_gradients"), summary.at("workers")[2].at("dropped_gradients"));
  // A step takes as long as the slower of the two fast devices, not 3 s.
  const double steps = summary.at("rounds");
  EXPECT_LT(static_cast<double>(summary.at("training_seconds")) / steps, 1.2);
}

TEST(ServerJob, GoesOnWithoutAWorkerThatDied) {
  for (const std::string scheme : {"asgd", "ssp", "backup", "downpour", "easgd"}) {
    TrainConfig config = config_of(scheme, "death");
    config.cluster = cluster_of(config.run_dir, unequal);
    config.servers = 2;
    set(config, "server-learning-rate", 0.01);  // of downpour
    SimulatedJob job = toy_job(config);
    job.simulation().at(TimePoint(std::chrono::milliseconds(20500)),
                        [&] { job.simulation().kill(SimulatedJob::node_of_worker(Rank{2})); });
    job.run();
    const auto& summary = job.summary();
    EXPECT_EQ(summary.at("ended_because"), "every epoch is done") << scheme;
    EXPECT_GT(summary.at("accuracy"), 0.5) << scheme;
    EXPECT_THAT(std::string(summary.at("workers")[2].at("dropped_because")), HasSubstr("worker 2"))
        << scheme;
  }
}

TrainConfig an_epoch_of(const std::string& scheme) {
  TrainConfig config = config_of(scheme, "an-epoch-of-" + scheme);
  config.cluster = cluster_of(config.run_dir, unequal);
  config.epochs = 1;
  if (scheme == "downpour") {
    set(config, "server-learning-rate", *config.learning_rate);
  }
  return config;
}

TEST(ServerJob, ComputesForNoMoreThanTheWholeTime) {
  for (const std::string scheme : {"asgd", "downpour", "easgd", "hogwild", "esync", "nbssgd"}) {
    const TrainConfig config = an_epoch_of(scheme);
    SimulatedJob job = toy_job(config);
    job.run();
    for (const auto& worker : job.summary().at("workers")) {
      EXPECT_LE(worker.at("computing_time_ratio"), 1.0) << scheme << ": " << worker;
    }
  }
}

TEST(ServerJob, TestsEachModelOnce) {
  for (const std::string scheme : {"asgd", "downpour", "easgd", "hogwild"}) {
    const TrainConfig config = an_epoch_of(scheme);
    SimulatedJob job = toy_job(config);
    job.run();
    std::set<std::uint64_t> samples;
    const auto& evaluations = job.summary().at("evaluations");
    for (const auto& evaluation : evaluations) {
      samples.insert(evaluation.at("samples").get<std::uint64_t>());
    }
    EXPECT_EQ(samples.size(), evaluations.size()) << scheme << ": " << evaluations;
  }
}

TEST(ServerJob, EasgdTestsTheCentre) {
  TrainConfig config = config_of("easgd", "centre");
  config.cluster = cluster_of(config.run_dir, unequal);
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_GT(job.summary().at("accuracy"), 0.5);
  EXPECT_NE(last_checkpoint(config).values("weight"), job.params()[0]);
}

TEST(HogwildJob, TestsTheModelAtTheEndAndGoesOnFromIt) {
  TrainConfig config = config_of("hogwild", "hogwild-job");
  config.cluster = cluster_of(config.run_dir, unequal);
  config.epochs = 1;
  SimulatedJob job = toy_job(config);
  job.run();
  const auto& summary = job.summary();
  EXPECT_GT(summary.at("cluster_efficiency"), 0.9);
  EXPECT_EQ(summary.at("evaluations").back().at("round"),
            round_of(*latest_checkpoint(config.run_dir / "checkpoints")));
  EXPECT_GE(summary.at("evaluations").back().at("samples"), 600);
  config.epochs = 2;
  SimulatedJob more = toy_job(config, /*resume=*/true);
  more.run();
  EXPECT_GE(more.summary().at("samples"), 2 * 600);
  EXPECT_LT(more.summary().at("samples"), 2 * 600 + 3 * 16 + 3 * 16);
}

TEST(ServerJob, AGradientThatIsNotFiniteIsReportedAndNotSpread) {
  TrainConfig config = config_of("asgd", "nan");
  config.learning_rate = 1e38;
  SimulatedJob job = toy_job(config);
  EXPECT_THROW(job.run(), sim::NodeFailed);
  EXPECT_THAT(job.errors(), testing::Contains(HasSubstr("is not finite; lower the learning rate")));
}

}  // namespace
}  // namespace syncopate::server_job_test
