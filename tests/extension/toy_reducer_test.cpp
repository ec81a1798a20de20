// Goal:   a reducer is one file and one line: `--aggregate` and jobs know one that is added in this
//         way, and one that takes the memory of an accelerator gets gradients where they are.
// Method: the list of reducers is compiled with an additional line (CMakeLists.txt). The reducer is
//         set from the command line and from the configuration file; a job in the simulator trains
//         with it; replicas count the copies of their gradients.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/reducer.hpp"
#include "scheme/ssgd.hpp"
#include "spec/config_file.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/support/toy_job.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ToyReducer, IsListed) {
  EXPECT_EQ(all_reducers().back()->name, "toy");
  EXPECT_THAT(find_field("aggregate")->choices(), testing::Contains("toy"));
}

TEST(ToyReducer, IsReadOnTheCommandLineAndInTheFile) {
  TrainConfig config;
  set(config, "aggregate", "toy");
  EXPECT_EQ(value_of(config, "aggregate"), "toy");
  EXPECT_THAT(to_toml(config), HasSubstr("aggregate = 'toy'"));
  EXPECT_EQ(parse_config(to_toml(config), "test.toml", {}), config);
}

nlohmann::ordered_json summary_with(const std::string& folder, const std::string& aggregate) {
  TrainConfig config = toy_config(fresh_folder(folder));
  config.scheme = "ssgd";
  set(config, "aggregate", aggregate);
  SimulatedJob job = toy_job(config);
  job.run();
  return job.summary();
}

TEST(ToyReducer, TrainsAJobAsAnyOther) {
  const auto summary = summary_with("toy-reducer", "toy");
  EXPECT_THAT(summary.at("aggregate").get<std::string>(), StartsWith("toy: 3 ranks"));
  EXPECT_NEAR(summary.at("loss").get<double>(),
              summary_with("toy-reducer-ring", "ring").at("loss").get<double>(), 1e-4);
}

/// A replica whose gradient is in the memory of an accelerator: it counts the copies from there to
/// the host, and back.
class AcceleratorReplica final : public QuadraticReplica {
 public:
  AcceleratorReplica() : QuadraticReplica({.features = 3}) {}

  bool reports_gradients() const override { return false; }
  std::span<float> view(ReplicaVector which) override {
    copies += which == ReplicaVector::grads ? 1 : 0;
    return QuadraticReplica::view(which);
  }
  void store(ReplicaVector which) override { copies += which == ReplicaVector::grads ? 1 : 0; }
  Values values(ReplicaVector which) override {
    const std::span<float> there = QuadraticReplica::view(which);
    return {there.data(), ValueType::float32, there.size(), {.kind = DeviceId::Kind::accelerator}};
  }

  int copies = 0;
};

/// The parameter that each rank has after one step on a batch of its own.
std::vector<std::pair<float, int>> after_a_step(const char* reducer) {
  return on_every_rank<std::pair<float, int>>(3, [&](Group& group) {
    AcceleratorReplica replica;
    const float feature = 1 + static_cast<float>(group.rank().value);
    replica.backward(Batch{.shape = {.channels = 3, .height = 1, .width = 1},
                           .features = std::vector(3, feature),
                           .labels = {0}});
    Ssgd scheme(group, {.averaging = {.reducer = find_reducer(reducer),
                                      .buckets = BucketReducer::Options{}}});
    scheme.after_backward(replica, {.samples = 1});
    const int copies = replica.copies;
    return std::pair(replica.view(ReplicaVector::params)[0], copies);
  });
}

TEST(ToyReducer, GetsTheGradientWhereItIs) {
  // ½ ‖w − x‖² from w = 0 with the features 1, 2 and 3, at rate 0.1.
  EXPECT_THAT(after_a_step("toy"), testing::Each(testing::Pair(testing::FloatEq(0.2F), 0)));
  EXPECT_THAT(after_a_step("ring"), testing::Each(testing::Pair(testing::FloatEq(0.2F), 2)));
}

}  // namespace
}  // namespace syncopate
