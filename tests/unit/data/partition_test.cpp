// Goal: a partition loses and repeats no sample, is fair, follows from its seed, and differs from
//       epoch to epoch.
// Method: random sizes, worker counts and shares, checked against the invariants of the header;
//       closed values where a formula gives them.

#include "data/partition.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "tests/unit/data/idx_files.hpp"

namespace syncopate {
namespace {

using Labels = std::vector<std::uint8_t>;
using Samples = std::vector<std::uint32_t>;

Labels random_labels(std::size_t count, std::uint32_t classes, Random& random) {
  Labels labels(count);
  for (auto& label : labels) {
    label = static_cast<std::uint8_t>(random.below(classes));
  }
  return labels;
}

/// All parts of an epoch, one after the other.
Samples whole_epoch(const Partition& partition, Epoch epoch) {
  Samples all;
  for (std::uint32_t rank = 0; rank < partition.workers(); ++rank) {
    const Samples part = partition.part(Rank{rank}, epoch);
    EXPECT_EQ(part.size(), partition.size(Rank{rank}));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(Partition, PutsEverySampleIntoExactlyOnePart) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto workers = 1 + random.below(12);
    const Labels labels = random_labels(workers + random.below(2'000), 10, random);
    std::vector<double> shares(workers);
    for (auto& share : shares) {
      share = 0.01 + 100 * random.uniform();
    }
    const bool split_by_class = random.below(2) == 1;
    const Partition partition(labels, {seed, split_by_class, shares});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      Samples all = whole_epoch(partition, {epoch});
      std::ranges::sort(all);
      Samples expected(labels.size());
      std::iota(expected.begin(), expected.end(), 0U);
      ASSERT_EQ(all, expected);
    }
  }
}

std::vector<std::size_t> sizes(std::size_t samples, std::vector<double> shares) {
  const Partition partition(Labels(samples, 0), {1, false, std::move(shares)});
  std::vector<std::size_t> sizes;
  for (std::uint32_t rank = 0; rank < partition.workers(); ++rank) {
    sizes.push_back(partition.size(Rank{rank}));
  }
  return sizes;
}

TEST(Partition, ApportionsByLargestRemainder) {
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(sizes(60'000, {1, 1, 0.5, 0.25}), (Sizes{21'818, 21'818, 10'909, 5'455}));
  EXPECT_EQ(sizes(10, {1, 1, 1}), (Sizes{4, 3, 3}));  // equal remainders: the lower rank
  EXPECT_EQ(sizes(10, {1, 1, 2, 2}), (Sizes{2, 2, 3, 3}));
  EXPECT_EQ(sizes(7, {6, 1}), (Sizes{6, 1}));
  EXPECT_EQ(sizes(3, {1, 1e-9, 1e-9}), (Sizes{3, 0, 0}));
  EXPECT_EQ(sizes(4, {1e308, 1e308}), (Sizes{2, 2}));
}

TEST(Partition, KeepsEverySizeWithinOneOfItsQuota) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<double> shares(1 + random.below(20));
    for (auto& share : shares) {
      share = 0.001 + random.uniform();
    }
    const std::size_t samples = shares.size() + random.below(100'000);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    const auto found = sizes(samples, shares);
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      const double quota = static_cast<double>(samples) * shares[rank] / sum;
      EXPECT_LT(std::abs(static_cast<double>(found[rank]) - quota), 1.0);
    }
  }
}

class EitherPartition : public testing::TestWithParam<bool> {
 protected:
  Partition make(std::uint64_t seed) const {
    Random random(5);
    return {random_labels(1'000, 10, random), {seed, GetParam(), {1, 2, 1}}};
  }
};

TEST_P(EitherPartition, FollowsFromSeedAndEpoch) {
  const Partition partition = make(7);
  const Partition again = make(7);
  EXPECT_EQ(whole_epoch(partition, Epoch{3}), whole_epoch(again, Epoch{3}));
  EXPECT_NE(whole_epoch(partition, Epoch{3}), whole_epoch(partition, Epoch{4}));
  EXPECT_NE(whole_epoch(partition, Epoch{3}), whole_epoch(make(8), Epoch{3}));
}

INSTANTIATE_TEST_SUITE_P(All, EitherPartition, testing::Bool(), [](const auto& instance) {
  return instance.param ? "SplitByClass" : "Shuffled";
});

TEST(Partition, ShufflesUniformly) {
  // Sample 0 lands in the first half of an epoch about every other time: 1,000 fair draws leave
  // [400, 600] once in 10^10 times.
  const Partition partition(Labels(64, 0), {3, false, {1, 1}});
  int hits = 0;
  for (std::uint64_t epoch = 0; epoch < 1'000; ++epoch) {
    const Samples part = partition.part(Rank{0}, {epoch});
    hits += std::ranges::count(part, 0U) == 1 ? 1 : 0;
  }
  EXPECT_GT(hits, 400);
  EXPECT_LT(hits, 600);
}

std::size_t classes_seen(const Partition& partition, Rank rank, const Labels& labels) {
  std::set<std::uint8_t> seen;
  for (const std::uint32_t sample : partition.part(rank, Epoch{0})) {
    seen.insert(labels[sample]);
  }
  return seen.size();
}

TEST(Partition, SplitByClassGivesAWorkerFewClasses) {
  const std::uint64_t seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  Labels labels(3'000);
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    labels[sample] = static_cast<std::uint8_t>(sample % 10);
  }
  random.shuffle(std::span(labels));
  for (std::size_t workers = 1; workers <= 25; ++workers) {
    const Partition partition(labels, {seed, true, std::vector<double>(workers, 1.0)});
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      EXPECT_LE(classes_seen(partition, Rank{rank}, labels), (10 + workers - 1) / workers + 1);
    }
  }
}

TEST(Partition, SplitByClassKeepsAWorkersSamples) {
  Random random(2);
  const Partition partition(random_labels(500, 10, random), {4, true, {1, 1, 1}});
  Samples first = partition.part(Rank{1}, Epoch{0});
  Samples later = partition.part(Rank{1}, Epoch{9});
  EXPECT_NE(first, later);
  std::ranges::sort(first);
  std::ranges::sort(later);
  EXPECT_EQ(first, later);
}

TEST(Partition, RefusesWhatCannotBeDivided) {
  const auto refusal = [](std::size_t samples, std::vector<double> shares) {
    return test::message_of<ConfigError>([&] { sizes(samples, shares); });
  };
  EXPECT_EQ(refusal(5, {}), "partition: expected at least one worker, found none");
  for (const double share : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(refusal(5, {1, share}), testing::HasSubstr("the share of worker 1 is"));
  }
  EXPECT_THAT(refusal(2, {1, 1, 1}), testing::HasSubstr("3 workers, but only 2 training samples"));
}

}  // namespace
}  // namespace syncopate
