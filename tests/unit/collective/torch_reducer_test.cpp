// Goal:   `--aggregate torch` sums by the allreduce of the program: over all ranks, or, after each
//         host has reduced, over the first of each host; it waits for a late rank as every reducer
//         does, and refuses a program whose allreduce has other members.
// Method: in the simulator, where the program's allreduce is a ring over the same ranks that counts
//         its calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "collective/allreduce.hpp"
#include "tests/support/simulated_group.hpp"
#include "transport/transport.hpp"

namespace syncopate {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// Stands for a process group of torch.
class ProgramsRing final : public NativeAllreduce {
 public:
  explicit ProgramsRing(Group members) : members_(std::move(members)) {}

  std::uint32_t size() const override { return members_.size(); }
  void allreduce(std::span<float> values, TimePoint /*deadline*/) override {
    ++calls;
    find_reducer("ring")->make(members_, {})->reduce({.values = values});
  }

  int calls = 0;

 private:
  Group members_;
};

struct Sum {
  std::vector<float> values;
  int calls = 0;  ///< of the program's allreduce
  std::string how = {};
};

/// The mean of rank + 1 with weights of rank + 1, so that Σ (r + 1)² / Σ (r + 1).
std::vector<Sum> means_on(const SimulatedGroup& group, const std::vector<Rank>& members,
                          std::size_t length) {
  return on_every_rank<Sum>(group, [&](Group& all) {
    std::optional<ProgramsRing> ring;
    if (std::ranges::find(members, all.rank()) != members.end()) {
      ring.emplace(all.subgroup(members).duplicate());
    }
    Allreduce allreduce(
        all, {.requested = find_reducer("torch"), .of_program = ring ? &*ring : nullptr});
    const auto own = static_cast<float>(all.rank().value + 1);
    Sum sum{.values = std::vector<float>(length, own)};
    double total = 0;
    for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
      total += rank + 1;
    }
    allreduce.mean({.values = std::span(sum.values), .weight = own}, total);
    sum.calls = ring ? ring->calls : 0;
    sum.how = allreduce.description();
    return sum;
  });
}

TEST(TorchReducer, SumsOverAllRanksOnHostsOfTheirOwn) {
  const auto sums = means_on({.size = 3}, {Rank{0}, Rank{1}, Rank{2}}, 100);
  for (const Sum& sum : sums) {
    EXPECT_THAT(sum.values, Each(testing::FloatEq(14.0F / 6)));
    EXPECT_EQ(sum.calls, 1);
    EXPECT_THAT(sum.how, HasSubstr("torch: 3 ranks"));
  }
}

TEST(TorchReducer, SumsOverTheFirstOfEachHostAfterTheHosts) {
  const SimulatedGroup group{.size = 4, .hosts = {0, 1, 0, 1}};
  const auto sums = means_on(group, {Rank{0}, Rank{1}}, 1000);
  std::vector<int> calls;
  for (const Sum& sum : sums) {
    EXPECT_THAT(sum.values, Each(testing::FloatEq(30.0F / 10)));
    EXPECT_THAT(sum.how, HasSubstr("torch between hosts: 4 ranks"));
    calls.push_back(sum.calls);
  }
  EXPECT_THAT(calls, ElementsAre(1, 1, 0, 0));
}

TEST(TorchReducer, LeavesOneHostToItsSharedMemory) {
  const SimulatedGroup group{.size = 2, .hosts = {0, 0}, .shared_memory = true};
  for (const Sum& sum : means_on(group, {Rank{0}, Rank{1}}, 1000)) {
    EXPECT_THAT(sum.values, Each(testing::FloatEq(5.0F / 3)));
    EXPECT_EQ(sum.calls, 0);
    EXPECT_THAT(sum.how, HasSubstr("shm: 2 ranks"));
  }
}

std::string refusal_with(const std::vector<Rank>& members) {
  try {
    means_on({.size = 3}, members, 10);
  } catch (const std::exception& error) {  // the simulation names the rank
    return error.what();
  }
  return "no error";
}

TEST(TorchReducer, RefusesAProgramWithoutAGroupOrWithAnother) {
  EXPECT_THAT(refusal_with({}), HasSubstr("--aggregate torch needs a process group"));
  EXPECT_THAT(
      refusal_with({Rank{0}, Rank{1}}),
      testing::AnyOf(HasSubstr("of the 3 workers that reduce with each other, found one of 2"),
                     HasSubstr("needs a process group of torch.distributed")));
}

}  // namespace
}  // namespace syncopate
