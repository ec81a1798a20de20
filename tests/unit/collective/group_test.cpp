// Goal:   a group that loses a member continues with the remaining members: its collectives end at
//         once, errors still report ranks of the job, and no message of a broken collective reaches
//         a later one.
// Method: simulated groups of four to seven ranks, with every algorithm. One member leaves at the
//         beginning of an allreduce, or is killed at each of many moments; the test reports the
//         losses.

#include "collective/group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/allreduce.hpp"
#include "collective/basic_collectives.hpp"
#include "membership/member_link.hpp"
#include "tests/sim/simulated_cluster.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;

/// The losses that a coordinator reports to one worker.
class ReportedLosses : public FailureListener {
 public:
  std::vector<Rank> lost() const override { return lost_; }
  void finished() override {}
  bool all_finished() const override { return false; }
  bool await_more(std::size_t known, TimePoint /*deadline*/) override {
    return lost_.size() > known;
  }

  std::vector<Rank> lost_;
};

Group knowing(Group& group, ReportedLosses& losses) {
  std::vector<NodeId> members;
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    members.push_back(group.node(Rank{rank}));
  }
  return Group(
      group.world(),
      {.members = members, .self = group.rank(), .failures = &losses, .hosts = group.hosts()});
}

/// Returns the host of each rank: ranks 2 h and 2 h + 1 are on host h.
std::vector<std::uint32_t> hosts_of_pairs(std::uint32_t ranks) {
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    hosts.push_back(rank / 2);
  }
  return hosts;
}

TEST(Group, NumbersTheRemainingMembers) {
  using Seen = std::vector<std::uint32_t>;
  const auto seen = on_every_rank<Seen>(4, [](Group& all) {
    ReportedLosses losses;
    Group group = knowing(all, losses);
    if (group.rank() == Rank{1} || group.rank() == Rank{2}) {
      return Seen{};
    }
    losses.lost_ = {Rank{2}, Rank{1}};  // two losses at once skip a generation
    group.drop_lost();
    EXPECT_EQ(group.node(Rank{1}), NodeId{3});
    return Seen{group.generation(), group.size(), group.rank().value,
                group.rank_in_job(group.rank()).value};
  });
  EXPECT_THAT(seen[0], ElementsAre(2, 2, 0, 0));
  EXPECT_THAT(seen[3], ElementsAre(2, 2, 1, 3));
}

TEST(Group, HasSubgroupsOfItsOwnGeneration) {
  using Seen = std::vector<std::uint32_t>;
  const SimulatedGroup on_two_hosts{.size = 5, .hosts = {7, 7, 8, 8, 8}};
  const auto seen = on_every_rank<Seen>(on_two_hosts, [](Group& all) {
    ReportedLosses losses;
    Group group = knowing(all, losses);
    if (group.rank().value < 2) {
      return Seen{};
    }
    losses.lost_ = {Rank{1}};
    group.drop_lost();
    const Group part = group.subgroup({Rank{1}, Rank{2}, Rank{3}});
    EXPECT_EQ(part.hosts(), Seen({8, 8, 8}));
    EXPECT_EQ(part.node(Rank{2}), NodeId{4});
    return Seen{part.generation(), part.size(), part.rank().value,
                part.rank_in_job(part.rank()).value};
  });
  EXPECT_THAT(seen[2], ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(seen[4], ElementsAre(1, 3, 2, 4));
}

/// One rank may have measured the links while another was interrupted. Both must measure again, so
/// that they agree.
TEST(Group, IsMeasuredAgainInEachGeneration) {
  const auto messages = on_every_rank<std::uint64_t>(3, [](Group& all) {
    ReportedLosses losses;
    Group group = knowing(all, losses);
    Allreduce allreduce(group, {});
    std::vector<float> values(100, 1);
    allreduce.reduce(values);
    if (group.rank() == Rank{2}) {
      return std::uint64_t{0};
    }
    losses.lost_ = {Rank{2}};
    group.drop_lost();
    const std::uint64_t before = group.transport().traffic().messages_sent;
    allreduce.reduce(values);
    EXPECT_EQ(allreduce.description().substr(0, 13), "tree: 2 ranks");
    return group.transport().traffic().messages_sent - before;
  });
  EXPECT_GT(messages[0], 50U);
  EXPECT_EQ(messages[1], messages[0]);
}

class EveryAllreduceOfAGroup : public testing::TestWithParam<std::string> {};

/// The member that leaves has sent a message that no rank receives, and others have sent to each
/// other.
TEST_P(EveryAllreduceOfAGroup, TakesNoMessageOfABrokenCollectiveForOneOfTheNext) {
  using Floats = std::vector<float>;
  const auto results = on_every_rank<Floats>(4, [](Group& all) {
    ReportedLosses losses;
    Group group = knowing(all, losses);
    Allreduce allreduce(group, {.requested = find_reducer(GetParam())});
    if (group.rank() == Rank{2}) {
      barrier(group);
      return Floats(1000, 3.0F);
    }
    barrier(group);
    Floats values(1000, 100.0F);
    EXPECT_THROW(
        {
          const auto reported = group.world().spawn("coordinator", [&] {
            group.world().sleep_for(5s);
            losses.lost_ = {Rank{2}};
          });
          try {
            allreduce.reduce(values);
          } catch (const PeerLost&) {
            reported->join();
            throw ViewChanged("as the coordinator reports");
          }
        },
        ViewChanged);
    EXPECT_LT(group.world().now(), TimePoint(6s)) << "long before the deadline";
    group.drop_lost();
    values.assign(1000, 1.0F);
    allreduce.reduce(values);
    barrier(group);
    return values;
  });
  EXPECT_THAT(results, Each(Each(3.0F)));
}

/// Kills one rank while all ranks repeat allreduces, and reports the loss 20 ms later. `results`
/// get the sums of the remaining ranks after that.
void reduce_while_one_dies(const std::string& reducer, std::uint32_t ranks, TimePoint when,
                           std::vector<float>& results) {
  sim::Simulation simulation(
      {.seed = 1, .network = {.link = {.bandwidth = 1e7, .latency = 1ms}, .jitter = 1}});
  std::vector<NodeId> nodes;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    nodes.push_back(NodeId{rank});
  }
  const Rank victim{ranks - 2};
  results.assign(ranks, 0);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    simulation.add_node("rank", [&, rank](World& world) {
      sim::meet(world, ranks);
      ReportedLosses losses;
      const auto detector = world.spawn("detector", [&] {
        world.sleep_until(when + 20ms);
        losses.lost_ = {victim};
      });
      Group group(world, {.members = nodes,
                          .self = Rank{rank},
                          .failures = &losses,
                          .hosts = hosts_of_pairs(ranks)});
      Allreduce allreduce(group, {.requested = find_reducer(reducer)});
      try {
        for (;;) {
          std::vector<float> values(3000, 1);
          allreduce.reduce(values);
          EXPECT_EQ(values[2999], static_cast<float>(ranks));
        }
      } catch (const PeerLost& loss) {
        EXPECT_EQ(loss.peer(), nodes[victim.value]) << "the remaining ranks wait for the report";
      } catch (const ViewChanged&) {
        EXPECT_LE(world.now(), when + 20ms + 2 * Group::glance);
      }
      detector->join();
      group.drop_lost();
      std::vector<float> values(3000, 1);
      allreduce.reduce(values);
      results[rank] = values[2999];
      world.transport().close(world.now() + 1min);
    });
  }
  simulation.at(when, [&] { simulation.kill(nodes[victim.value]); });
  simulation.run();
  results.erase(results.begin() + victim.value);
}

TEST_P(EveryAllreduceOfAGroup, EndsForAllWheneverOneIsKilled) {
  const bool measures = GetParam() == "auto" || GetParam() == "two-level";
  const Duration apart = measures ? 700us : 150us;  // so that some die after it
  for (std::uint32_t run = 0; run < 300; ++run) {
    SCOPED_TRACE(run);
    const std::uint32_t ranks = GetParam() == "butterfly" ? 4 : 4 + run % 4;
    std::vector<float> results;
    reduce_while_one_dies(GetParam(), ranks, TimePoint(run * apart), results);
    EXPECT_THAT(results, Each(static_cast<float>(ranks - 1)));
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryAllreduceOfAGroup,
                         testing::Values("auto", "ring", "butterfly", "binary-blocks", "tree",
                                         "two-level"),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Group, NamesRanksOfTheJob) {
  const auto missing = on_every_rank<std::vector<std::uint32_t>>(3, [](Group& all) {
    ReportedLosses losses;
    losses.lost_ = {Rank{1}};
    Group group = knowing(all, losses);
    std::vector<std::uint32_t> ranks;
    if (group.rank() != Rank{0}) {
      group.world().sleep_for(1h);
      return ranks;
    }
    group.drop_lost();
    try {
      barrier(group);
    } catch (const RanksMissing& error) {
      for (const Rank rank : error.wait().ranks) {
        ranks.push_back(rank.value);
      }
    }
    return ranks;
  });
  EXPECT_THAT(missing[0], ElementsAre(2));
}

}  // namespace
}  // namespace syncopate
