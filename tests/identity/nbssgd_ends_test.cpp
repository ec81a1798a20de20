// Goal:   an interrupted job of nbssgd ends with complete rounds: the noise of an update from few
//         samples would make a trained model worse.
// Method: a job of logistic regression on three equal devices in the simulator is interrupted at
//         ten moments; the test reads the samples of each round from the log of worker 0.

#include <gtest/gtest.h>

#include <sstream>

#include "base/file.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::nbssgd_ends_test {
namespace {

constexpr const char* equal =
    "name = \"equal\"\nbatch_samples = 16\n[[devices]]\nname = \"d\"\ncount = 3\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n";

TEST(NbssgdEnds, WithWholeRoundsWheneverItIsInterrupted) {
  for (int tenth = 0; tenth < 10; ++tenth) {
    SCOPED_TRACE(testing::Message() << "after 8." << tenth << " s");
    TrainConfig config = toy_config(fresh_folder("nbssgd-ends"));
    config.scheme = "nbssgd";
    config.cluster = cluster_of(config.run_dir, equal);
    config.checkpoint_every = {};
    SimulatedJob job = toy_job(config);
    job.simulation().at(TimePoint(std::chrono::milliseconds(8000 + 100 * tenth)),
                        [&] { job.interrupt(); });
    job.run();
    EXPECT_EQ(job.summary().at("ended_because"), "interrupted");
    EXPECT_LE(job.summary().at("training_seconds"), 12) << "two rounds more";
    std::istringstream log(read_file(RunFolder(config.run_dir).worker_log(Rank{0})));
    std::uint64_t before = 0;
    for (std::string line; std::getline(log, line);) {
      const auto entry = Recorder::Json::parse(line);
      const auto rounds = entry.at("round").get<std::uint64_t>() - before;
      before += rounds;
      EXPECT_GE(entry.at("round_samples"), rounds * 36) << line << ": of 48 at most";
    }
  }
}

}  // namespace
}  // namespace syncopate::nbssgd_ends_test
