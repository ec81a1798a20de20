// Goal:   rounds continue without a member that dies at any moment: all remaining ranks get every
//         result with the same bits. A result is the mean over all ranks or over the remaining
//         ranks; its sample count shows which.
// Method: four ranks in the simulator run rounds on a slow network, with each allreduce algorithm.
//         One rank is killed at each of a thousand moments, and in every second run another one a
//         little later. The others are notified shortly after a death.

#include "scheme/recovery.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "scheme/averaging.hpp"
#include "sim/simulation.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t ranks = 4;
constexpr std::uint64_t rounds = 4;

/// The coordinator's knowledge of the job.
struct Known {
  std::vector<Rank> lost;
  std::set<Rank> finished;
};

class ImmediateListener : public FailureListener {
 public:
  ImmediateListener(World& world, Known& known, Rank self)
      : world_(world), known_(known), self_(self) {}

  std::vector<Rank> lost() const override { return known_.lost; }
  void finished() override { known_.finished.insert(self_); }
  bool all_finished() const override {
    std::set<Rank> done = known_.finished;
    done.insert(known_.lost.begin(), known_.lost.end());
    return done.size() == ranks;
  }
  bool await_more(std::size_t known, TimePoint deadline) override {
    while (lost().size() <= known && !all_finished() && world_.now() < deadline) {
      world_.sleep_for(1ms);
    }
    return world_.now() < deadline;
  }

 private:
  World& world_;
  Known& known_;
  Rank self_;
};

/// The results that one rank received.
struct Got {
  std::vector<std::vector<float>> models;
  std::vector<std::uint64_t> samples;
  std::vector<GradientSet> gradients;
};

/// Returns the tensors of the ranks whose bits are set in `samples`.
GradientSet tensors_of(std::uint64_t samples) {
  std::vector<std::uint8_t> flags;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    flags.push_back((samples >> rank & 1U) != 0 ? 1 : 0);
  }
  return GradientSet(flags);
}

/// Runs the rounds of one rank. It contributes the value 2^rank with 2^rank samples and the
/// gradient of one of four tensors, so that a result shows which ranks it contains.
Got run_rounds(World& world, Known& known, Rank self, const std::string& reducer) {
  std::vector<NodeId> nodes;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    nodes.push_back(NodeId{rank});
    if (rank != self.value) {
      world.transport().introduce(NodeId{rank}, sim::address_of(NodeId{rank}));
    }
  }
  ImmediateListener failures(world, known, self);
  Group group(world, {.members = nodes, .self = self, .failures = &failures});
  Averaging averaging(group, {.reducer = find_reducer(reducer)});
  Got got;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    world.sleep_for(self.value * 3ms);
    std::vector<float> model(1000, static_cast<float>(1U << self.value));
    std::vector<float> buffers(100, 1);
    const std::uint64_t samples = 1U << self.value;
    const auto result =
        averaging.synchronize(Round{round}, {.samples = samples, .gradients = tensors_of(samples)},
                              {.model = model, .buffers = buffers});
    EXPECT_EQ(result.round_info.sync_round.round, Round{round});
    EXPECT_NEAR(buffers[0], 1, 1e-6);
    got.models.push_back(model);
    got.samples.push_back(result.round_info.sync_round.samples);
    got.gradients.push_back(result.round_info.sync_round.gradients);
  }
  averaging.leave();
  world.transport().close(world.now() + 1min);
  return got;
}

struct Death {
  Rank rank;
  TimePoint when;
};

/// Runs the rounds with these deaths and returns the results of each rank that remains.
std::vector<Got> run_with(const std::vector<Death>& deaths, std::uint64_t seed,
                          const std::string& reducer) {
  Known known;
  std::vector<Got> got(ranks);
  sim::Simulation simulation(
      {.seed = seed, .network = {.link = {.bandwidth = 2e5, .latency = 2ms}, .jitter = 1}});
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    simulation.add_node("rank", [&, rank](World& world) {
      got[rank] = run_rounds(world, known, Rank{rank}, reducer);
    });
  }
  for (const Death& death : deaths) {
    simulation.at(death.when, [&] { simulation.kill(NodeId{death.rank.value}); });
    simulation.at(death.when + 5ms, [&] { known.lost.push_back(death.rank); });
  }
  simulation.run();
  for (const Death& death : deaths) {
    got[death.rank.value] = {};
  }
  std::erase_if(got, [](const Got& one) { return one.models.empty(); });
  return got;
}

/// Returns Σ 2^r · 2^r / Σ 2^r over the ranks whose bits are set in `samples`.
float mean_of(std::uint64_t samples) {
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t weight = samples & (1U << rank);
    sum += weight * weight;
  }
  return static_cast<float>(sum) / static_cast<float>(samples);
}

void expect_alike(const std::vector<Got>& got) {
  std::uint64_t before = (1U << ranks) - 1;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::uint64_t samples = got[0].samples.at(round);
    EXPECT_EQ(samples & ~before, 0U) << "nobody comes back";
    EXPECT_NEAR(got[0].models[round][0], mean_of(samples), 1e-5);
    before = samples;
    for (const Got& other : got) {
      EXPECT_EQ(other.samples.at(round), samples);
      EXPECT_EQ(other.gradients.at(round), tensors_of(samples));
      EXPECT_EQ(other.models.at(round), got[0].models[round]);
    }
  }
}

class Recoveries : public testing::TestWithParam<std::string> {};

TEST_P(Recoveries, GiveThoseWhoAreLeftEveryResultWheneverOneDies) {
  for (std::uint32_t run = 0; run < 1000; ++run) {
    SCOPED_TRACE(run);
    const TimePoint when(run * 400us);
    std::vector<Death> deaths = {{Rank{1 + run % 3}, when}};
    if (run % 2 == 1) {
      deaths.push_back({Rank{1 + (run + 1) % 3}, when + run % 30 * 1ms});
    }
    const std::vector<Got> got = run_with(deaths, run, GetParam());
    ASSERT_EQ(got.size(), ranks - deaths.size());
    expect_alike(got);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Recoveries,
                         testing::Values("auto", "ring", "butterfly", "binary-blocks", "tree"));

}  // namespace
}  // namespace syncopate
