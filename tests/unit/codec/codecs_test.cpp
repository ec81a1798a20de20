// Goal:   decoded values are within the documented error of the encoded ones, for every length;
//         values that are not finite stay so; bytes that no codec produces are refused.
// Method: every codec at lengths around every boundary, on normally distributed values, values of
//         wide range and few distinct values (seed printed), is compared with bounds computed in
//         float64; 16-bit formats with every bit pattern; damaged frames with one fault each.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "codec/codec_frame.hpp"
#include "codec/half_floats.hpp"

namespace syncopate {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;
using testing::HasSubstr;

constexpr std::uint64_t seed = 11;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Floats normal_values(std::size_t count, float size = 1) {
  Random random = Random(seed).fork("values", count);
  Floats values(count);
  for (float& value : values) {
    value = size * static_cast<float>(random.normal());
  }
  return values;
}

/// Returns random values with magnitudes from 2^-40 to 2^40.
Floats wide_values(std::size_t count) {
  Random random = Random(seed).fork("wide values", count);
  Floats values(count);
  for (float& value : values) {
    value = static_cast<float>(random.normal() * std::exp2(random.uniform() * 80 - 40));
  }
  return values;
}

std::unique_ptr<Codec> codec_named(const std::string& text) {
  return make_codec(Compression::parse(text));
}

Bytes encoded(Codec& codec, const Floats& values) {
  Bytes frame(frame_bytes(codec, values.size()));
  encode_frame(codec, values, frame);
  return frame;
}

Floats decoded(const Codec& codec, const Bytes& frame, std::size_t count) {
  Floats values(count, -77);
  decode_frame(codec, frame, values);
  return values;
}

Floats round_trip(Codec& codec, const Floats& values) {
  return decoded(codec, encoded(codec, values), values.size());
}

double norm(const Floats& values) {
  double sum = 0;
  for (const float value : values) {
    sum += double{value} * value;
  }
  return std::sqrt(sum);
}

double distance(const Floats& one, const Floats& other) {
  Floats difference(one.size());
  std::transform(one.begin(), one.end(), other.begin(), difference.begin(), std::minus<>());
  return norm(difference);
}

const std::size_t lengths[] = {0,   1,   2,   3,    15,   16,   17,    31,    32,    33,
                               255, 256, 257, 2047, 2048, 2049, 65535, 65536, 65537, 150'001};

class EveryCodec : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Codec> codec_ = codec_named(GetParam());
};

/// Returns the documented error of a whole vector, relative to its norm.
double bound_of(const std::string& name) {
  if (name == "bf16") {
    return 0x1p-8;
  }
  if (name == "fp16") {
    return 0x1p-11;
  }
  if (name == "int8") {
    return 4.5 / 254;  // if the largest value of a group is 4.5 times its root mean square
  }
  if (name == "onebit" || name.ends_with("/2bit")) {
    return 1;
  }
  return std::sqrt(1 - Compression::parse(name).parameter + 0x1p-16);
}

TEST_P(EveryCodec, KeepsItsBoundAtEveryLength) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  for (const std::size_t length : lengths) {
    const Floats values = normal_values(length);
    EXPECT_LE(distance(round_trip(*codec_, values), values), bound_of(GetParam()) * norm(values))
        << length << " values";
  }
}

TEST_P(EveryCodec, KeepsZerosAndIsTheSameEachTime) {
  const Floats zeros(70'000, 0.0F);
  EXPECT_EQ(round_trip(*codec_, zeros), zeros);
  const Floats values = normal_values(70'000);
  EXPECT_EQ(encoded(*codec_, values), encoded(*codec_, values));
}

TEST_P(EveryCodec, MakesNoFiniteValueInfinite) {
  for (const float size : {1e-42F, 1e-37F, 1e30F, 3e37F, std::numeric_limits<float>::max() / 8}) {
    for (const float value : round_trip(*codec_, normal_values(300, size))) {
      ASSERT_FALSE(std::isinf(value)) << size;
    }
  }
}

TEST_P(EveryCodec, ShowsValuesThatAreNotFinite) {
  for (const float strange : {nan, infinity, -infinity}) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{299}, std::size_t{70'000}}) {
      Floats values = normal_values(70'001);
      values[place] = strange;
      const Floats made = round_trip(*codec_, values);
      EXPECT_FALSE(std::isfinite(made[place])) << strange << " at " << place;
      EXPECT_TRUE(std::isfinite(made[40'000])) << "a group far away";
    }
  }
}

TEST_P(EveryCodec, BlocksAreIndependent) {
  const Floats values = normal_values(2 * Codec::block_values + 100);
  const Floats whole = round_trip(*codec_, values);
  const Floats second(values.begin() + Codec::block_values,
                      values.begin() + 2 * Codec::block_values);
  const Floats alone = round_trip(*codec_, second);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), whole.begin() + Codec::block_values));
}

TEST_P(EveryCodec, AddsWhatItDecodes) {
  const Floats values = normal_values(70'000);
  Floats sums(values.size(), 2);
  Floats scratch(Codec::block_values);
  add_frame(*codec_, encoded(*codec_, values), sums, scratch);
  Floats expected = round_trip(*codec_, values);
  for (float& value : expected) {
    value += 2;
  }
  EXPECT_EQ(sums, expected);
}

TEST_P(EveryCodec, RefusesFramesOfAnotherLengthOrKind) {
  const Floats values = normal_values(1000);
  const Bytes good = encoded(*codec_, values);
  Floats into(values.size());
  Bytes shorter(good.begin(), good.end() - 1);
  EXPECT_THROW(decode_frame(*codec_, shorter, into), ProtocolError);
  Bytes longer = good;
  longer.push_back(std::byte{0});
  EXPECT_THROW(decode_frame(*codec_, longer, into), ProtocolError);
  EXPECT_THROW(decode_frame(*codec_, Bytes(3), into), ProtocolError);
  for (std::size_t at = 0; at < 16; ++at) {
    Bytes damaged = good;
    damaged[at] ^= std::byte{1};
    EXPECT_THROW(decode_frame(*codec_, damaged, into), ProtocolError) << "byte " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryCodec,
                         testing::Values("bf16", "fp16", "int8", "onebit", "topk:0.01", "topk:0.3",
                                         "topk:1", "topk:0.01/2bit", "topk:0.3/2bit",
                                         "topk:1/2bit"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == ':' || c == '.' || c == '/'; }, '_');
                           return name;
                         });

/// Expects that the error of each value is at most `bound(|value|)`.
template <class Bound>
void expect_near(Codec& codec, const Floats& values, const Bound& bound) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const Floats made = round_trip(codec, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::abs(double{made[i]} - values[i]), bound(std::abs(double{values[i]})))
        << values[i];
  }
}

TEST(Bf16, RoundsToNearest) {
  const auto codec = codec_named("bf16");
  const Floats values = wide_values(100'000);
  expect_near(*codec, values, [](double size) { return 0x1p-8 * size; });
  const Floats made = round_trip(*codec, values);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), made.begin(), [](float value, float half) {
    return half == from_bf16(to_bf16(value));
  }));
  // 1 + 2^-8 is halfway between 1 and 1 + 2^-7; ties round to even, which is 1.
  EXPECT_EQ(round_trip(*codec, {1 + 0x1p-8F, 1 + 0x3p-8F, 1 + 0x1p-8F + 0x1p-20F}),
            (Floats{1, 1 + 0x1p-6F, 1 + 0x1p-7F}));
}

TEST(Bf16, EveryHalfIsItself) {
  const auto codec = codec_named("bf16");
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_bf16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(round_trip(*codec, {value})[0]));
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(round_trip(*codec, {value})[0]),
                std::bit_cast<std::uint32_t>(value));
    }
  }
}

/// Returns the value of a half by the definition of the format.
double value_of_half(std::uint32_t bits) {
  const double sign = bits >> 15 != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double mantissa = bits & 0x3ff;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                       : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Fp16, EveryHalfIsItself) {
  const auto codec = codec_named("fp16");
  Floats values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits >> 10 & 31) != 31) {
      values.push_back(static_cast<float>(value_of_half(bits)));
    }
  }
  const Bytes frame = encoded(*codec, values);
  std::size_t at = 16;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits >> 10 & 31) != 31) {
      std::uint16_t made = 0;
      std::memcpy(&made, frame.data() + at, 2);
      ASSERT_EQ(made, bits);
      at += 2;
    }
  }
  EXPECT_EQ(decoded(*codec, frame, values.size()), values);
}

TEST(Fp16, RoundsToNearestAndStaysFinite) {
  const auto codec = codec_named("fp16");
  expect_near(*codec, wide_values(100'000), [](double size) {
    return size > 65504 ? size - 65504 : std::max(0x1p-11 * size, 0x1p-25);
  });
  EXPECT_EQ(round_trip(*codec, {70'000, -1e30F, infinity, -infinity}),
            (Floats{65504, -65504, infinity, -infinity}));
}

TEST(Int8, IsWithinHalfAStepOfEachGroup) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const auto codec = codec_named("int8");
  const Floats values = wide_values(10'000);
  const Floats made = round_trip(*codec, values);
  for (std::size_t at = 0; at < values.size(); at += 256) {
    double greatest = 0;
    const std::size_t end = std::min(values.size(), at + 256);
    for (std::size_t i = at; i < end; ++i) {
      greatest = std::max(greatest, double{std::abs(values[i])});
    }
    for (std::size_t i = at; i < end; ++i) {
      ASSERT_LE(std::abs(double{made[i]} - values[i]), greatest / 254 * 1.0001);
    }
  }
}

TEST(Onebit, BecomesTheMeansOfBothSides) {
  const auto codec = codec_named("onebit");
  EXPECT_EQ(round_trip(*codec, {1, 3, -2, 0, -4}), (Floats{4.0F / 3, 4.0F / 3, -3, 4.0F / 3, -3}));
  Floats two_groups(256, 5);
  two_groups.insert(two_groups.end(), {-1, -1, -4});
  const Floats made = round_trip(*codec, two_groups);
  EXPECT_EQ(made[255], 5);
  EXPECT_EQ(made[256], -2);
}

TEST(Topk, KeepsTheGreatestAndTheFirstOfEquals) {
  const auto codec = codec_named("topk:0.5");
  EXPECT_EQ(round_trip(*codec, {1, -8, 2, 4, 0.5F, 0, -2, 2}), (Floats{0, -8, 2, 4, 0, 0, -2, 0}));
  EXPECT_EQ(round_trip(*codec, {3, 3, 3}), (Floats{3, 3, 0}));
}

TEST(Topk, FindsTheSameAsSortingDoes) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  for (const double ratio : {0.0001, 0.001, 0.01, 0.1, 0.7}) {
    const auto codec = codec_named(fmt::format("topk:{}", ratio));
    for (Floats values : {normal_values(65'536), wide_values(40'000)}) {
      const Floats made = round_trip(*codec, values);
      const auto kept = static_cast<std::size_t>(
          std::count_if(made.begin(), made.end(), [](float value) { return value != 0; }));
      EXPECT_EQ(kept, static_cast<std::size_t>(std::ceil(ratio * double(values.size()))));
      double least_kept = std::numeric_limits<double>::infinity();
      double greatest_left = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double size = std::abs(values[i]);
        made[i] != 0 ? least_kept = std::min(least_kept, size)
                     : greatest_left = std::max(greatest_left, size);
      }
      EXPECT_GE(least_kept, greatest_left) << ratio;
    }
  }
}

/// The codec guesses its threshold from a few values. The guess is wrong if these are the largest
/// values, or if all values are equal.
TEST(Topk, IsRightWhereTheGuessIsWrong) {
  const auto codec = codec_named("topk:0.01");
  Floats values = normal_values(65'536);
  for (std::size_t i = 0; i < values.size(); i += 31) {
    values[i] += i % 93 == 0 ? 1000.0F : 0.0F;
  }
  const Floats made = round_trip(*codec, values);
  EXPECT_EQ(std::count_if(made.begin(), made.end(), [](float value) { return value != 0; }), 656);
  const Floats ones(65'536, 1);
  const Floats first = round_trip(*codec, ones);
  EXPECT_EQ(first[655], 1);
  EXPECT_EQ(first[656], 0);
}

/// Of 4096 values the greatest four are kept: 8, 8 and 6 are at least their mean 5.75, 1 is not.
TEST(Topk2bit, KeepsTheSignAndTheNearerOfTwoMeans) {
  Floats values(4096, 0.25F);
  values[3] = -8;
  values[500] = 6;
  values[4000] = 8;
  values[4095] = -1;
  const auto codec = codec_named("topk:0.0009/2bit");
  Floats expected(4096, 0);
  expected[3] = -22.0F / 3;
  expected[500] = expected[4000] = 22.0F / 3;
  expected[4095] = -1;
  EXPECT_EQ(round_trip(*codec, values), expected);
  EXPECT_EQ(frame_bytes(*codec, 4096), 16U + 8 + 8) << "four codes of 14 bits";
  Floats two_chunks = values;
  two_chunks.push_back(0.5F);
  expected.push_back(0.5F);
  EXPECT_EQ(round_trip(*codec, two_chunks), expected);
}

/// The mean of the greatest tenth of normally distributed magnitudes and two levels for them.
TEST(Topk2bit, LosesLittleMoreThanTopk) {
  const Floats values = normal_values(65'536);
  const auto error = [&](const std::string& name) {
    return distance(round_trip(*codec_named(name), values), values) / norm(values);
  };
  EXPECT_LT(error("topk:0.1/2bit"), error("topk:0.1") * 1.01);
  EXPECT_LT(frame_bytes(*codec_named("topk:0.1/2bit"), 65'536),
            frame_bytes(*codec_named("topk:0.1"), 65'536) / 2);
}

void expect_refused(const std::string& name, std::size_t values, std::size_t at,
                    const std::vector<std::uint8_t>& bytes, const std::string& because) {
  const auto codec = codec_named(name);
  Bytes frame = encoded(*codec, normal_values(values));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    frame[at + i] = std::byte{bytes[i]};
  }
  try {
    decoded(*codec, frame, values);
    ADD_FAILURE() << name << " took a damaged frame";
  } catch (const ProtocolError& error) {
    EXPECT_THAT(error.what(), HasSubstr(because));
  }
}

TEST(DamagedFrames, AreRefused) {
  expect_refused("int8", 300, 16, {0, 0, 0x80, 0x7f}, "scale");           // infinity
  expect_refused("int8", 300, 20, {0, 0, 0x80, 0xbf}, "scale");           // -1
  expect_refused("onebit", 300, 16, {0, 0, 0x80, 0xbf}, "mean");          // positive mean: -1
  expect_refused("onebit", 300, 20, {0, 0, 0x80, 0x3f}, "mean");          // negative mean: 1
  expect_refused("onebit", 300, 16, {0, 0, 0xc0, 0x7f}, "mean");          // only one mean is NaN
  expect_refused("topk:0.01", 300, 16, {0x2c, 0x01}, "indices");          // 300
  expect_refused("topk:0.01", 300, 16, {9, 0, 9, 0, 10, 0}, "indices");   // a repeated index
  expect_refused("topk:0.01", 300, 16, {9, 0, 8, 0, 10, 0}, "indices");   // descending indices
  expect_refused("topk:0.01/2bit", 300, 16, {0, 0, 0x80, 0x7f}, "mean");  // infinity
  expect_refused("topk:0.01/2bit", 300, 20, {0, 0, 0x80, 0xbf}, "mean");  // -1
  expect_refused("topk:0.01/2bit", 300, 16, {0, 0, 0xc0, 0x7f}, "mean");  // only one is NaN
  expect_refused("topk:0.01/2bit", 300, 24, {0x2c, 0x01}, "indices");     // 300
  expect_refused("topk:0.01/2bit", 300, 24, {9, 0x40, 2, 0}, "indices");  // a repeated index
}

TEST(CompressionText, IsReadAndRefused) {
  for (const std::string text :
       {"none", "bf16", "fp16", "int8", "onebit", "topk:0.01", "topk:1", "topk:0.01/2bit"}) {
    EXPECT_EQ(to_string(Compression::parse(text)), text);
  }
  EXPECT_EQ(Compression::parse("topk:0.25").parameter, 0.25);
  for (const std::string text :
       {"", "zip", "topk", "topk:", "topk:0", "topk:1.5", "topk:-1", "topk:nan", "topk:0.1x",
        "topk:/2bit", "topk:2/2bit", "topk:0.1/3bit", "int8/2bit"}) {
    EXPECT_THROW(Compression::parse(text), ConfigError) << text;
    EXPECT_FALSE(is_parametrised_compression(text));
  }
}

TEST(CompressionText, IsMadeFromTheCodecs) {
  EXPECT_THAT(compression_names(), testing::ElementsAre("none", "bf16", "fp16", "int8", "onebit"));
  EXPECT_EQ(parametrised_compressions(), "topk:RATIO, topk:RATIO/2bit");
  EXPECT_EQ(compression_help(),
            "topk:RATIO: the greatest values, a RATIO of them in (0, 1]; topk:RATIO/2bit: the "
            "same, each as a sign and one of two magnitudes");
  EXPECT_TRUE(is_parametrised_compression("topk:0.5"));
  EXPECT_TRUE(is_parametrised_compression("topk:0.5/2bit"));
  EXPECT_FALSE(is_parametrised_compression("int8"));
}

/// Frames contain the numbers of codecs, so the numbers must not change.
TEST(Codecs, HaveTheNumbersOfTheWireProtocol) {
  std::map<std::string, int> numbers;
  for (const CodecSpec* const codec : all_codecs()) {
    const std::string_view suffix = codec->parameter ? codec->parameter->suffix : "";
    numbers[fmt::format("{}{}", codec->name, suffix)] = codec->number;
  }
  EXPECT_THAT(numbers,
              testing::ElementsAre(testing::Pair("bf16", 1), testing::Pair("fp16", 2),
                                   testing::Pair("int8", 3), testing::Pair("onebit", 4),
                                   testing::Pair("topk", 5), testing::Pair("topk/2bit", 6)));
}

}  // namespace
}  // namespace syncopate
