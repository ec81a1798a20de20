// Goal:   reductions of every type by every operation equal those of a plain loop, with the same
//         bits on every rank; reduce and reduce_scatter give the same values as allreduce.
// Method: simulated groups of 1 to 17 ranks, and vectors shorter and longer than the group; random
//         values over the whole range of each type are combined by a loop in the order of ranks.
#include "collective/part_reduction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "codec/half_floats.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

using testing::Each;

template <class Value>
Value drawn(Random& random) {
  return static_cast<Value>(random.bits());
}

template <>
double drawn(Random& random) {
  return random.normal() * std::exp2(static_cast<double>(random.below(200)) - 100);
}

template <>
float drawn(Random& random) {
  return static_cast<float>(random.normal());
}

template <>
Bfloat16 drawn(Random& random) {
  return {to_bf16(static_cast<float>(random.normal()))};
}

template <>
Float16 drawn(Random& random) {
  return {to_f16(static_cast<float>(random.normal()))};
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

/// Converts a term to the type in which terms are combined: float for 16-bit formats, otherwise its
/// own type.
template <class Value>
Value widened(Value value) {
  return value;
}

float widened(Bfloat16 value) {
  return from_bf16(value.bits);
}

float widened(Float16 value) {
  return from_f16(value.bits);
}

template <class Value, class Wide>
Value narrowed(Wide wide) {
  if constexpr (std::is_same_v<Value, Bfloat16>) {
    return {to_bf16(wide)};
  } else if constexpr (std::is_same_v<Value, Float16>) {
    return {to_f16(wide)};
  } else {
    return wide;
  }
}

template <class Value>
Value combined_integers(Value one, Value other, Reduction reduction) {
  const auto left = static_cast<std::uint64_t>(std::int64_t{one});
  const auto right = static_cast<std::uint64_t>(std::int64_t{other});
  switch (reduction) {
    case Reduction::sum: return static_cast<Value>(left + right);
    case Reduction::product: return static_cast<Value>(left * right);
    case Reduction::bit_and: return static_cast<Value>(left & right);
    case Reduction::bit_or: return static_cast<Value>(left | right);
    case Reduction::bit_xor: return static_cast<Value>(left ^ right);
    case Reduction::min: return std::min(one, other);
    case Reduction::max: return std::max(one, other);
  }
  return one;
}

template <class Wide>
Wide combined(Wide one, Wide other, Reduction reduction) {
  if constexpr (std::is_integral_v<Wide>) {
    return combined_integers(one, other, reduction);
  } else {
    switch (reduction) {
      case Reduction::sum: return one + other;
      case Reduction::product: return one * other;
      case Reduction::min: return std::min(one, other);
      case Reduction::max: return std::max(one, other);
      default: return one;
    }
  }
}

/// A case with one type of values and one operation.
template <class Value>
class ReductionCase {
 public:
  ReductionCase(std::uint32_t ranks, std::size_t count, Reduction reduction)
      : ranks_(ranks), count_(count), reduction_(reduction) {}

  std::vector<Value> expected() const {
    std::vector<Value> result;
    for (std::size_t i = 0; i < count_; ++i) {
      auto wide = widened(terms_[0][i]);
      for (std::uint32_t rank = 1; rank < ranks_; ++rank) {
        wide = combined(wide, widened(terms_[rank][i]), reduction_);
      }
      result.push_back(narrowed<Value>(wide));
    }
    return result;
  }

  void expect_reductions() const {
    using Vector = std::vector<Value>;
    const Vector whole = expected();
    EXPECT_THAT(on_every_rank<Vector>(ranks_,
                                      [&](Group& group) {
                                        Vector values = terms_[group.rank().value];
                                        part_allreduce(group, std::span(values), reduction_);
                                        return values;
                                      }),
                Each(whole));
    const Rank root{ranks_ / 2};
    const auto reduced = on_every_rank<Vector>(ranks_, [&](Group& group) {
      Vector values = terms_[group.rank().value];
      reduce(group, std::span(values), reduction_, root);
      return values;
    });
    const auto blocks = on_every_rank<Vector>(ranks_, [&](Group& group) {
      Vector values = terms_[group.rank().value];
      values.resize(count_ / ranks_ * ranks_);
      Vector mine(values.size() / ranks_);
      reduce_scatter(group, std::span(values), std::span(mine), reduction_);
      return mine;
    });
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      SCOPED_TRACE(rank);
      EXPECT_TRUE(reduced[rank] == (rank == root.value ? whole : terms_[rank]));
      const std::size_t length = count_ / ranks_;
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(rank * length);
      EXPECT_TRUE(blocks[rank] == Vector(begin, begin + static_cast<std::ptrdiff_t>(length)));
    }
  }

 private:
  std::vector<std::vector<Value>> drawn_terms() const {
    std::vector<std::vector<Value>> terms;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      terms.push_back(values_of<Value>(rank, count_));
    }
    return terms;
  }

  std::uint32_t ranks_;
  std::size_t count_;
  Reduction reduction_;
  std::vector<std::vector<Value>> terms_ = drawn_terms();  ///< a vector for each rank
};

class PartReductionTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  template <class Value>
  void expect_reductions() {
    std::vector reductions{Reduction::sum, Reduction::product, Reduction::min, Reduction::max};
    if (std::is_integral_v<Value>) {
      reductions.insert(reductions.end(),
                        {Reduction::bit_and, Reduction::bit_or, Reduction::bit_xor});
    }
    for (const Reduction reduction : reductions) {
      for (const std::size_t count : {0U, 1U, 5U, 203U}) {
        SCOPED_TRACE(testing::Message()
                     << "operation " << static_cast<int>(reduction) << ", " << count << " values");
        ReductionCase<Value>(GetParam(), count, reduction).expect_reductions();
      }
    }
  }
};

TEST_P(PartReductionTest, OfFloatingValues) {
  expect_reductions<float>();
  expect_reductions<double>();
}

TEST_P(PartReductionTest, OfIntegersThatWrapAround) {
  expect_reductions<std::int8_t>();
  expect_reductions<std::uint8_t>();
  expect_reductions<std::int32_t>();
  expect_reductions<std::int64_t>();
}

TEST_P(PartReductionTest, OfHalvesRoundedOnce) {
  expect_reductions<Bfloat16>();
  expect_reductions<Float16>();
}

INSTANTIATE_TEST_SUITE_P(Ranks, PartReductionTest, testing::Values(1, 2, 3, 4, 7, 8, 17));

/// In bfloat16, whose numbers from 256 on are even, 256 + 1 + 1 is 256 if each addition rounds.
TEST(PartReductionOfBfloat16, AddsInFloat) {
  const auto results = on_every_rank<float>(3, [](Group& group) {
    std::vector<Bfloat16> values{{to_bf16(group.rank().value == 0 ? 256.0F : 1.0F)}};
    part_allreduce(group, std::span(values), Reduction::sum);
    return from_bf16(values[0].bits);
  });
  EXPECT_THAT(results, Each(258.0F));
}

TEST(PartReductionOfBits, IsForIntegers) {
  const auto refused = on_every_rank<bool>(2, [](Group& group) {
    std::vector<float> values(3);
    try {
      part_allreduce(group, std::span(values), Reduction::bit_or);
    } catch (const ConfigError&) {
      return true;
    }
    return false;
  });
  EXPECT_THAT(refused, Each(true));
}

}  // namespace
}  // namespace syncopate
