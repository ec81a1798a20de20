// Goal:   sums of every type are those of a plain loop, with the same bits on every rank.
// Method: simulated groups of 1 to 17 ranks, vectors shorter and longer than the group; random
//         values of the whole range of each type, added by a loop in the order of ranks.
#include "collective/sum_allreduce.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "base/random.hpp"
#include "codec/bfloat16.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

template <class Value>
Value drawn(Random& random) {
  return static_cast<Value>(random.bits());
}

template <>
double drawn(Random& random) {
  return random.normal() * std::exp2(static_cast<double>(random.below(200)) - 100);
}

template <>
Bfloat16 drawn(Random& random) {
  return {to_bf16(static_cast<float>(random.normal()))};
}

template <class Value>
std::vector<Value> values_of(std::uint32_t rank, std::size_t count) {
  Random random(1000 + rank);
  std::vector<Value> values(count);
  for (Value& value : values) {
    value = drawn<Value>(random);
  }
  return values;
}

double plus(double one, double other) {
  return one + other;
}

std::int32_t plus(std::int32_t one, std::int32_t other) {
  return std::bit_cast<std::int32_t>(static_cast<std::uint32_t>(one) +
                                     static_cast<std::uint32_t>(other));
}

std::int64_t plus(std::int64_t one, std::int64_t other) {
  return std::bit_cast<std::int64_t>(static_cast<std::uint64_t>(one) +
                                     static_cast<std::uint64_t>(other));
}

template <class Value>
std::vector<Value> expected_sum(std::uint32_t ranks, std::size_t count) {
  std::vector<Value> sum = values_of<Value>(0, count);
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    const std::vector<Value> terms = values_of<Value>(rank, count);
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] = plus(sum[i], terms[i]);
    }
  }
  return sum;
}

template <>
std::vector<Bfloat16> expected_sum(std::uint32_t ranks, std::size_t count) {
  std::vector<float> sum(count);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::vector<Bfloat16> terms = values_of<Bfloat16>(rank, count);
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] += from_bf16(terms[i].bits);
    }
  }
  std::vector<Bfloat16> rounded;
  for (const float value : sum) {
    rounded.push_back({to_bf16(value)});
  }
  return rounded;
}

class SumAllreduce : public testing::TestWithParam<std::uint32_t> {
 protected:
  template <class Value>
  void expect_sums() {
    for (const std::size_t count : {0U, 1U, 5U, 1003U}) {
      SCOPED_TRACE(count);
      const auto results = on_every_rank<std::vector<Value>>(GetParam(), [&](Group& group) {
        std::vector<Value> values = values_of<Value>(group.rank().value, count);
        sum_allreduce(group, std::span(values));
        return values;
      });
      const std::vector<Value> expected = expected_sum<Value>(GetParam(), count);
      for (const auto& found : results) {
        EXPECT_TRUE(found == expected);
      }
    }
  }
};

TEST_P(SumAllreduce, OfDoubles) {
  expect_sums<double>();
}

TEST_P(SumAllreduce, OfIntegersThatWrapAround) {
  expect_sums<std::int32_t>();
  expect_sums<std::int64_t>();
}

TEST_P(SumAllreduce, OfBfloat16RoundedOnce) {
  expect_sums<Bfloat16>();
}

INSTANTIATE_TEST_SUITE_P(Ranks, SumAllreduce, testing::Values(1, 2, 3, 4, 7, 8, 17));

/// 256 + 1 + 1 in bfloat16, whose numbers from 256 on are even, is 256 if each addition rounds.
TEST(SumAllreduceOfBfloat16, AddsInFloat) {
  const auto results = on_every_rank<float>(3, [](Group& group) {
    std::vector<Bfloat16> values{{to_bf16(group.rank().value == 0 ? 256.0F : 1.0F)}};
    sum_allreduce(group, std::span(values));
    return from_bf16(values[0].bits);
  });
  EXPECT_THAT(results, testing::Each(258.0F));
}

}  // namespace
}  // namespace syncopate
