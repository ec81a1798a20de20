// Goal: a partition neither loses nor repeats a sample, is fair, follows from its seed, and differs
//       from epoch to epoch.
// Method: random sizes, worker counts and shares are checked for the invariants in the header;
//       closed values if a formula gives them.

#include "data/partition.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "tests/unit/data/idx_files.hpp"

namespace syncopate {
namespace {

using Labels = std::vector<Label>;
using Samples = std::vector<std::uint32_t>;

constexpr Split by_class{.kind = Split::Kind::by_class};
constexpr std::array splits{Split{}, by_class, Split{.kind = Split::Kind::dirichlet, .alpha = 0.5}};

Labels random_labels(std::size_t count, std::uint32_t classes, Random& random) {
  Labels labels(count);
  for (auto& label : labels) {
    label = static_cast<Label>(random.below(classes));
  }
  return labels;
}

/// Returns all parts of an epoch, one after the other.
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
    const Split split = splits[random.below(splits.size())];
    SCOPED_TRACE(testing::Message() << "split " << to_string(split));
    if (split.is_skewed() && labels.size() < 100 * workers) {
      continue;  // a part could be empty, which is refused
    }
    const Partition partition(labels, {seed, split, shares, {}});
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
  const Partition partition(Labels(samples, 0), {1, Split{}, std::move(shares), {}});
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

class EachPartition : public testing::TestWithParam<Split> {
 protected:
  Partition make(std::uint64_t seed) const {
    Random random(5);
    return {random_labels(1'000, 10, random), {seed, GetParam(), {1, 2, 1}, {}}};
  }
};

TEST_P(EachPartition, FollowsFromSeedAndEpoch) {
  const Partition partition = make(7);
  const Partition again = make(7);
  EXPECT_EQ(whole_epoch(partition, Epoch{3}), whole_epoch(again, Epoch{3}));
  EXPECT_NE(whole_epoch(partition, Epoch{3}), whole_epoch(partition, Epoch{4}));
  EXPECT_NE(whole_epoch(partition, Epoch{3}), whole_epoch(make(8), Epoch{3}));
}

INSTANTIATE_TEST_SUITE_P(All, EachPartition, testing::ValuesIn(splits), [](const auto& instance) {
  const std::string name = to_string(instance.param);
  return name.substr(0, name.find(':'));
});

TEST(Partition, ShufflesUniformly) {
  // Sample 0 is in the first part in about half of the epochs. With 1,000 fair draws the count is
  // outside [400, 600] with a probability of about 10^-10.
  const Partition partition(Labels(64, 0), {3, Split{}, {1, 1}, {}});
  int hits = 0;
  for (std::uint64_t epoch = 0; epoch < 1'000; ++epoch) {
    const Samples part = partition.part(Rank{0}, {epoch});
    hits += std::ranges::count(part, 0U) == 1 ? 1 : 0;
  }
  EXPECT_GT(hits, 400);
  EXPECT_LT(hits, 600);
}

std::size_t classes_seen(const Partition& partition, Rank rank, const Labels& labels) {
  std::set<Label> seen;
  for (const std::uint32_t sample : partition.part(rank, Epoch{0})) {
    seen.insert(labels[sample]);
  }
  return seen.size();
}

TEST(SplitByClass, GivesAWorkerFewClasses) {
  const std::uint64_t seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  Labels labels(3'000);
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    labels[sample] = static_cast<Label>(sample % 10);
  }
  random.shuffle(std::span(labels));
  for (std::size_t workers = 1; workers <= 25; ++workers) {
    const Partition partition(labels, {seed, by_class, std::vector<double>(workers, 1.0), {}});
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      EXPECT_LE(classes_seen(partition, Rank{rank}, labels), (10 + workers - 1) / workers);
    }
  }
}

/// Returns the classes of each worker, by rank.
std::vector<std::set<int>> classes_of(const Labels& labels, std::uint32_t workers) {
  std::vector<std::set<int>> classes;
  for (const auto& part : parts_by_class(labels, workers)) {
    std::set<int> seen;
    for (const std::uint32_t sample : part) {
      seen.insert(labels[sample]);
    }
    classes.push_back(std::move(seen));
  }
  return classes;
}

std::vector<std::size_t> part_sizes(const Labels& labels, std::uint32_t workers) {
  std::vector<std::size_t> sizes;
  for (const auto& part : parts_by_class(labels, workers)) {
    sizes.push_back(part.size());
  }
  return sizes;
}

/// Returns the labels of `count` samples in each of ten classes, as in Fashion-MNIST.
Labels ten_classes(std::size_t count) {
  Labels labels(10 * count);
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    labels[sample] = static_cast<Label>(sample % 10);
  }
  return labels;
}

TEST(SplitByClass, DealsWholeClassesEvenly) {
  using Classes = std::vector<std::set<int>>;
  const Labels labels = ten_classes(60);
  EXPECT_EQ(classes_of(labels, 2), (Classes{{0, 2, 4, 6, 8}, {1, 3, 5, 7, 9}}));
  EXPECT_EQ(classes_of(labels, 4), (Classes{{0, 4, 8}, {1, 5, 9}, {2, 6}, {3, 7}}));
  EXPECT_EQ(classes_of(labels, 6), (Classes{{0, 6}, {1, 7}, {2, 8}, {3, 9}, {4}, {5}}));
  EXPECT_EQ(part_sizes(labels, 4), (std::vector<std::size_t>{180, 180, 120, 120}));
}

TEST(SplitByClass, DealsLargeClassesFirst) {
  // The workers first get the classes of 6 and of 3 samples. The class of 2 goes to the smaller
  // part, and the class of 1 to the part with fewer classes.
  const Labels labels{0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3};
  EXPECT_EQ(part_sizes(labels, 2), (std::vector<std::size_t>{7, 5}));
}

TEST(SplitByClass, SharesClassesWhereWorkersAreMore) {
  const Labels labels = ten_classes(60);
  const auto sizes = part_sizes(labels, 25);
  const auto classes = classes_of(labels, 25);
  std::vector<int> holders(10);
  for (std::size_t rank = 0; rank < 25; ++rank) {
    EXPECT_EQ(classes[rank].size(), 1U);
    ++holders[static_cast<std::size_t>(*classes[rank].begin())];
    EXPECT_EQ(sizes[rank], 60U / (*classes[rank].begin() < 5 ? 3 : 2));
  }
  EXPECT_EQ(holders, (std::vector<int>{3, 3, 3, 3, 3, 2, 2, 2, 2, 2}));
}

/// Returns the distance of the workers' shares of a class from equal shares, added over workers and
/// averaged over classes.
double skew(const Partition& partition, const Labels& labels) {
  double sum = 0;
  for (std::uint32_t rank = 0; rank < partition.workers(); ++rank) {
    std::vector<double> count(10);
    for (const std::uint32_t sample : partition.part(Rank{rank}, Epoch{0})) {
      ++count[labels[sample]];
    }
    for (const double samples : count) {
      sum += std::abs(samples / 600 - 1.0 / partition.workers()) / 10;
    }
  }
  return sum;
}

TEST(SplitByDirichlet, IsTheMoreSkewedTheSmallerAlphaIs) {
  // For a proportion q of Dirichlet(α, α, α, α), E |q − 1/4| is 0.008 at α = 1000 and 0.28 at
  // α = 0.3.
  const Labels labels = ten_classes(600);
  const auto of_alpha = [&](double alpha) {
    const Split split{.kind = Split::Kind::dirichlet, .alpha = alpha};
    return skew(Partition(labels, {9, split, {1, 1, 1, 1}, {}}), labels) / 4;
  };
  EXPECT_NEAR(of_alpha(1'000), 0.008, 0.004);
  EXPECT_NEAR(of_alpha(0.3), 0.24, 0.06);
  EXPECT_LT(of_alpha(1), of_alpha(0.3));
}

TEST(SplitByDirichlet, DrawsAgainUntilEveryWorkerHasItsLeast) {
  const Labels labels = ten_classes(600);
  const Split split{.kind = Split::Kind::dirichlet, .alpha = 0.2};
  const std::vector<std::uint32_t> least(6, 200);
  std::size_t fewest = labels.size();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Partition partition(labels, {seed, split, std::vector<double>(6, 1), least});
    for (std::uint32_t rank = 0; rank < 6; ++rank) {
      EXPECT_GE(partition.size(Rank{rank}), 200U) << "seed " << seed;
    }
    const Partition any(labels, {seed, split, std::vector<double>(6, 1), {}});
    for (std::uint32_t rank = 0; rank < 6; ++rank) {
      fewest = std::min(fewest, any.size(Rank{rank}));
    }
  }
  EXPECT_LT(fewest, 200U);
}

TEST(SplitByDirichlet, RefusesWhatLeavesAWorkerLessThanABatch) {
  const Split split{.kind = Split::Kind::dirichlet, .alpha = 0.001};
  const std::string refusal = test::message_of<ConfigError>([&] {
    Partition(ten_classes(60),
              {1, split, std::vector<double>(12, 1), std::vector<std::uint32_t>(12, 16)});
  });
  EXPECT_THAT(refusal, testing::StartsWith("split dirichlet:0.001 leaves worker "));
  EXPECT_THAT(refusal, testing::EndsWith("fewer than a mini-batch of 16, in the last of 100 draws; "
                                         "use fewer workers, smaller batches or a larger alpha"));
}

TEST(SplitName, IsReadAsItIsWritten) {
  for (const char* name : {"iid", "class", "dirichlet:0.3", "dirichlet:10"}) {
    EXPECT_EQ(to_string(Split::parse(name)), name);
    EXPECT_EQ(is_dirichlet(name), std::string_view(name).starts_with("dirichlet")) << name;
  }
  for (const char* name : {"", "classes", "dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:-1",
                           "dirichlet:inf", "dirichlet:nan", "dirichlet:1x"}) {
    EXPECT_THROW(Split::parse(name), ConfigError) << name;
    EXPECT_FALSE(is_dirichlet(name)) << name;
  }
}

TEST(SplitByClass, KeepsAWorkersSamples) {
  Random random(2);
  const Partition partition(random_labels(500, 10, random), {4, by_class, {1, 1, 1}, {}});
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
