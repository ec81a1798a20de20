// Goal:   a compressed mean leaves the same bits on every rank, for every codec, number of ranks
//         and length; its errors do not accumulate over many rounds; momentum SGD reaches the
//         minimum with it; --compress-remote compresses only between hosts; damaged bytes end it
//         with an error.
// Method: groups in the simulator, for each codec; means of random vectors (seed printed) are
//         compared with float64, and bytes with the transport's traffic counters.

#include "collective/compressed_allreduce.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "codec/codec_frame.hpp"
#include "collective/allreduce.hpp"
#include "tests/support/simulated_group.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

using testing::Each;
using testing::Eq;
using testing::HasSubstr;
using testing::StartsWith;
using Floats = std::vector<float>;

constexpr std::uint64_t seed = 21;

Floats random_values(std::size_t count, std::uint32_t rank, std::uint64_t round = 0) {
  Random random = Random(seed).fork("values", 1000 * round + rank);
  Floats values(count);
  for (float& value : values) {
    value = static_cast<float>(random.normal());
  }
  return values;
}

double norm(const Floats& values) {
  double sum = 0;
  for (const float value : values) {
    sum += double{value} * value;
  }
  return std::sqrt(sum);
}

class EveryCompressedAllreduce : public testing::TestWithParam<std::string> {
 protected:
  Allreduce::Options options() const { return {.compression = Compression::parse(GetParam())}; }
};

TEST_P(EveryCompressedAllreduce, LeavesTheSameBitsOnEveryRankAtEveryLength) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  for (const std::uint32_t ranks : {2U, 3U, 5U}) {
    for (const std::size_t length : {0U, 1U, 2U, 4U, 1001U, 200'003U}) {
      const auto results = on_every_rank<Floats>(ranks, [&](Group& group) {
        Allreduce allreduce(group, options());
        Floats values = random_values(length, group.rank().value);
        allreduce.mean({.values = values, .weight = 1, .may_lose = true}, group.size());
        return values;
      });
      EXPECT_THAT(results, Each(Eq(results[0]))) << ranks << " ranks, " << length << " values";
    }
  }
}

TEST_P(EveryCompressedAllreduce, LosesNothingInTheLongRun) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  constexpr std::size_t length = 3000;
  constexpr std::uint32_t ranks = 3;
  constexpr int rounds = 400;
  // The mean with weights 1, 2 and 3 is Σ w_r x_r / 6. It is reduced in two parts, as buckets are.
  const auto results = on_every_rank<Floats>(ranks, [&](Group& group) {
    Allreduce allreduce(group, options());
    const std::uint32_t rank = group.rank().value;
    Floats sums(length);
    for (int round = 0; round < rounds; ++round) {
      Floats values = random_values(length, rank);
      const std::span<float> whole(values);
      allreduce.mean({.values = whole.subspan(1000),
                      .weight = static_cast<double>(rank + 1),
                      .may_lose = true,
                      .first = 1000},
                     6);
      allreduce.mean(
          {.values = whole.first(1000), .weight = static_cast<double>(rank + 1), .may_lose = true},
          6);
      for (std::size_t i = 0; i < length; ++i) {
        sums[i] += values[i] / rounds;
      }
    }
    return sums;
  });
  Floats expected(length);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Floats values = random_values(length, rank);
    for (std::size_t i = 0; i < length; ++i) {
      expected[i] += static_cast<float>(rank + 1) / 6 * values[i];
    }
  }
  Floats difference(length);
  std::transform(results[0].begin(), results[0].end(), expected.begin(), difference.begin(),
                 std::minus<>());
  EXPECT_LT(norm(difference), 0.1 * norm(expected));
}

/// Runs momentum SGD on three ranks with weights 1, 2 and 3. The function of rank r is
/// Σ ½ h_i (w_i − x_ri)², with h from 0.05 to 1. Returns the final loss minus the least loss, from
/// about 0.1 at the start.
std::vector<double> losses_by_momentum(const Allreduce::Options& options) {
  constexpr std::size_t length = 3000;
  constexpr std::uint32_t ranks = 3;
  constexpr int steps = 2000;
  const auto curvature = [](std::size_t i) {
    return 0.05F + 0.95F * static_cast<float>(i) / length;
  };
  Floats minimum(length);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Floats own = random_values(length, rank);
    for (std::size_t i = 0; i < length; ++i) {
      minimum[i] += static_cast<float>(rank + 1) / 6 * own[i];
    }
  }
  return on_every_rank<double>(ranks, [&](Group& group) {
    Allreduce allreduce(group, options);
    const std::uint32_t rank = group.rank().value;
    const Floats own = random_values(length, rank);
    Floats weights(length);
    Floats velocity(length);
    Floats gradient(length);
    for (int step = 0; step < steps; ++step) {
      const float rate = 0.04F * (1 - static_cast<float>(step) / steps);
      for (std::size_t i = 0; i < length; ++i) {
        gradient[i] = curvature(i) * (weights[i] - own[i]);
      }
      allreduce.mean(
          {.values = gradient, .weight = static_cast<double>(rank + 1), .may_lose = true}, 6);
      for (std::size_t i = 0; i < length; ++i) {
        velocity[i] = 0.9F * velocity[i] + gradient[i];
        weights[i] -= rate * velocity[i];
      }
    }
    double loss = 0;
    for (std::size_t i = 0; i < length; ++i) {
      loss += 0.5 * curvature(i) * std::pow(double{weights[i]} - minimum[i], 2) / length;
    }
    return loss;
  });
}

TEST_P(EveryCompressedAllreduce, LetsMomentumReachTheMinimum) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Allreduce::Options corrected = options();
  corrected.momentum = 0.9;
  const std::vector<double> losses = losses_by_momentum(corrected);
  EXPECT_THAT(losses, Each(Eq(losses[0])));
  EXPECT_LT(losses[0], 1e-5);
}

TEST_P(EveryCompressedAllreduce, IgnoresARankWithoutWeight) {
  const auto results = on_every_rank<Floats>(2, [&](Group& group) {
    Allreduce allreduce(group, options());
    Floats values(100, group.rank() == Rank{0} ? 4.0F : std::nanf(""));
    allreduce.mean({.values = values,
                    .weight = static_cast<double>(group.rank() == Rank{0} ? 8 : 0),
                    .may_lose = true},
                   8);
    return values;
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_THAT(results[0], Each(testing::AnyOf(Eq(4.0F), Eq(0.0F))));
  EXPECT_THAT(results[0], testing::Contains(4.0F));
}

TEST_P(EveryCompressedAllreduce, ShowsEveryRankAValueThatIsNotFinite) {
  const auto results = on_every_rank<Floats>(3, [&](Group& group) {
    Allreduce allreduce(group, options());
    Floats values(9000, 1.0F);
    if (group.rank() == Rank{1}) {
      values[10] = std::nanf("");
    }
    allreduce.mean({.values = values, .weight = 1, .may_lose = true}, 3);
    return values;
  });
  for (const Floats& values : results) {
    EXPECT_TRUE(std::isnan(values[10]));
    EXPECT_FALSE(std::isnan(values[8999]));
  }
}

TEST_P(EveryCompressedAllreduce, SendsAsMuchLessAsItReports) {
  constexpr std::size_t length = 1'000'000;
  const auto bytes_sent = [&](const Allreduce::Options& options) {
    return on_every_rank<double>(2, [&](Group& group) {
      Allreduce allreduce(group, options);
      Floats values = random_values(length, group.rank().value);
      allreduce.cost(length);
      const auto before = group.transport().traffic().bytes_sent;
      allreduce.mean({.values = values, .weight = 1, .may_lose = true}, 2);
      const auto sent = static_cast<double>(group.transport().traffic().bytes_sent - before);
      if (options.compression) {
        // A rank sends half of the vector as a part, half of it as results, and two message
        // headers.
        const CompressionStats stats = allreduce.compression();
        EXPECT_EQ(stats.values, length);
        EXPECT_NEAR(sent, static_cast<double>(stats.encoded_bytes), 200);
        EXPECT_THAT(allreduce.description(), StartsWith(GetParam() + ": 2 ranks, 4 MB, "));
      }
      return sent;
    })[0];
  };
  const auto codec = make_codec(Compression::parse(GetParam()));
  const double ratio = 4.0 * length / static_cast<double>(frame_bytes(*codec, length));
  EXPECT_NEAR(bytes_sent({}) / bytes_sent(options()), ratio, 0.05 * ratio);
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCompressedAllreduce,
                         testing::Values("bf16", "fp16", "int8", "onebit", "topk:0.1"),
                         [](const auto& info) { return info.param.substr(0, 4); });

TEST(CompressRemote, LeavesASingleHostAlone) {
  const auto results =
      on_every_rank<Floats>({.size = 3, .hosts = {0, 0, 0}}, [&](Group& group) -> Floats {
        Allreduce allreduce(group,
                            {.compression = Compression::parse("onebit"), .compress_remote = true});
        EXPECT_FALSE(allreduce.compresses());
        Floats values{1, 2, static_cast<float>(group.rank().value)};
        allreduce.mean({.values = values, .weight = 1, .may_lose = true}, 3);
        EXPECT_EQ(allreduce.compression().values, 0);
        return values;
      });
  EXPECT_THAT(results, Each(Eq(Floats{1, 2, 1})));
}

TEST(CompressRemote, ReducesEachHostUncompressedFirst) {
  constexpr std::size_t length = 2'500'000;  // several slices of two levels
  const auto results = on_every_rank<Floats>({.size = 4, .hosts = {0, 0, 1, 1}}, [&](Group& group) {
    Allreduce allreduce(group,
                        {.compression = Compression::parse("int8"), .compress_remote = true});
    EXPECT_TRUE(allreduce.compresses());
    Floats values = random_values(length, group.rank().value);
    allreduce.mean({.values = values, .weight = 1, .may_lose = true}, 4);
    const bool is_first = group.rank().value % 2 == 0;
    EXPECT_EQ(allreduce.compression().values, is_first ? length : 0);
    return values;
  });
  EXPECT_THAT(results, Each(Eq(results[0])));
  Floats mean(length);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const Floats values = random_values(length, rank);
    for (std::size_t i = 0; i < length; ++i) {
      mean[i] += values[i] / 4;
    }
  }
  Floats lost(length);
  std::transform(results[0].begin(), results[0].end(), mean.begin(), lost.begin(), std::minus<>());
  EXPECT_LT(norm(lost), 0.02 * norm(mean));
}

/// Returns the average over some steps of a rank's means, with the same values in each step.
Floats means_of_steps(Group& group, const Allreduce::Options& options, int steps) {
  Allreduce allreduce(group, options);
  Floats sums(3000);
  for (int step = 0; step < steps; ++step) {
    Floats values = random_values(sums.size(), group.rank().value);
    const std::span<float> whole(values);
    allreduce.mean({.values = whole.subspan(1000), .weight = 1, .may_lose = true, .first = 1000},
                   group.size());
    allreduce.mean({.values = whole.first(1000), .weight = 1, .may_lose = true}, group.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += values[i] / static_cast<float>(steps);
    }
  }
  return sums;
}

TEST(AllreduceOfVelocities, AreMeansOfGradientsInPartsAndBetweenHosts) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  for (const bool remote : {false, true}) {
    const auto results =
        on_every_rank<Floats>({.size = 4, .hosts = {0, 0, 1, 1}}, [&](Group& group) {
          return means_of_steps(group,
                                {.compression = Compression::parse("onebit"),
                                 .compress_remote = remote,
                                 .momentum = 0.9},
                                800);
        });
    EXPECT_THAT(results, Each(Eq(results[0])));
    Floats off = results[0];
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const Floats own = random_values(off.size(), rank);
      std::transform(off.begin(), off.end(), own.begin(), off.begin(),
                     [](float rest, float each) { return rest - each / 4; });
    }
    EXPECT_LT(norm(off), 0.1 * norm(results[0]));
  }
}

TEST(AllreduceOfVelocities, CannotBeRetried) {
  const auto make = [](double momentum) {
    CompressedAllreduce(Compression::parse("int8"), CompressedAllreduce::Commits::deferred,
                        momentum);
  };
  EXPECT_NO_THROW(make(0));
  EXPECT_THROW(make(0.9), InternalError);
}

TEST(DamagedFrames, AreRefusedByTheirReceiver) {
  const auto results = on_every_rank<std::string>(2, [&](Group& group) -> std::string {
    const Compression compression = Compression::parse("int8");
    if (group.rank() == Rank{0}) {  // sends a frame with an infinite scale
      const auto codec = make_codec(compression);
      std::vector<std::byte> frame(frame_bytes(*codec, 500));
      encode_frame(*codec, Floats(500, 1), frame);
      const float infinity = std::numeric_limits<float>::infinity();
      std::memcpy(frame.data() + 16, &infinity, sizeof(infinity));
      send(group.transport(), group.node(Rank{1}), group.tag(tags::parts), frame, group.deadline());
      group.world().sleep_for(std::chrono::seconds(1));  // waits for the other rank's frame
      return "";
    }
    Floats values(1000, 1);
    CompressedAllreduce sums(compression, CompressedAllreduce::Commits::immediate);
    try {
      sums.run(group, values, 1, 0);
    } catch (const ProtocolError& error) {
      return error.what();
    }
    return "taken";
  });
  EXPECT_THAT(results[1], HasSubstr("scale"));
}

}  // namespace
}  // namespace syncopate
