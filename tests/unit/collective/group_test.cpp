// Goal:   a group that loses a member becomes the group of those who are left: its collectives end at once,
//         errors go on naming the job's ranks, and what a broken one has left behind reaches no other.
// Method: simulated groups of four, in which one goes away in the middle of an allreduce; losses that are told
//         by hand.

#include "collective/group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/member_link.hpp"
#include "collective/allgather.hpp"
#include "collective/ring.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;

/// What a coordinator would tell one worker.
class ToldByHand : public Losses {
 public:
  std::vector<Rank> lost() const override { return lost_; }
  void report(const wire::Missing& /*missing*/) override {}
  void finished() override {}
  bool all_finished() const override { return false; }
  bool await_more(std::size_t known, TimePoint /*deadline*/) override {
    return lost_.size() > known;
  }

  std::vector<Rank> lost_;
};

Group knowing(Group& group, ToldByHand& losses) {
  std::vector<NodeId> members;
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    members.push_back(group.node(Rank{rank}));
  }
  return Group(group.world(), {.members = members, .self = group.rank(), .losses = &losses});
}

TEST(Group, NumbersThoseWhoAreLeft) {
  using Seen = std::vector<std::uint32_t>;
  const auto seen = on_every_rank<Seen>(4, [](Group& all) {
    ToldByHand losses;
    Group group = knowing(all, losses);
    if (group.rank() == Rank{1} || group.rank() == Rank{2}) {
      return Seen{};
    }
    losses.lost_ = {Rank{2}, Rank{1}};  // two at once: a generation is passed over
    group.catch_up();
    EXPECT_EQ(group.node(Rank{1}), NodeId{3});
    return Seen{group.generation(), group.size(), group.rank().value,
                group.rank_in_job(group.rank()).value};
  });
  EXPECT_THAT(seen[0], ElementsAre(2, 2, 0, 0));
  EXPECT_THAT(seen[3], ElementsAre(2, 2, 1, 3));
}

/// The member that goes has sent what nobody will take; others have sent to each other by then.
TEST(Group, TakesNoMessageOfABrokenCollectiveForOneOfTheNext) {
  using Values = std::vector<float>;
  const auto sums = on_every_rank<Values>(4, [](Group& all) {
    ToldByHand losses;
    Group group = knowing(all, losses);
    if (group.rank() == Rank{2}) {
      barrier(group);
      return Values(1000, 3.0F);
    }
    barrier(group);
    Values values(1000, 100.0F);
    EXPECT_THROW(
        {
          const auto told = group.world().spawn("coordinator", [&] {
            group.world().sleep_for(5s);
            losses.lost_ = {Rank{2}};
          });
          try {
            ring_allreduce(group, values);
          } catch (const PeerLost&) {
            told->join();
            throw ViewChanged("as it will be told");
          }
        },
        ViewChanged);
    EXPECT_LT(group.world().now(), TimePoint(6s)) << "long before the deadline";
    group.catch_up();
    values.assign(1000, 1.0F);
    ring_allreduce(group, values);
    barrier(group);
    return values;
  });
  EXPECT_THAT(sums, Each(Each(3.0F)));
}

TEST(Group, NamesRanksOfTheJob) {
  const auto missing = on_every_rank<std::vector<std::uint32_t>>(3, [](Group& all) {
    ToldByHand losses;
    losses.lost_ = {Rank{1}};
    Group group = knowing(all, losses);
    std::vector<std::uint32_t> ranks;
    if (group.rank() != Rank{0}) {
      group.world().sleep_for(1h);
      return ranks;
    }
    group.catch_up();
    try {
      barrier(group);
    } catch (const RanksMissing& error) {
      ranks.assign(error.report().ranks().begin(), error.report().ranks().end());
    }
    return ranks;
  });
  EXPECT_THAT(missing[0], ElementsAre(2));
}

}  // namespace
}  // namespace syncopate
