// Goal:   a written file is read back exactly, and a damaged file is refused in one line.
// Method: round trips through a file; bytes damaged by hand and at random (seed printed).

#include "checkpoint/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string written_file() {
  const std::string path = testing::TempDir() + "syncopate-tensors.safetensors";
  const std::array<float, 6> weight{1, -2, 3.5F, 0, 1e-30F, 6};
  const std::array<float, 1> bias{7};
  const std::array tensors{NamedTensor{"conv1.weight", {2, 3}, weight},
                           NamedTensor{"conv1.bias", {1}, bias}, NamedTensor{"empty", {0}, {}}};
  write_safetensors(path, {{"step", "12"}}, tensors);
  return read_file(path);
}

std::string with_header(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\0');
}

std::string error_of(const std::string& bytes) {
  try {
    const Safetensors damaged(bytes, "x.safetensors");
    return "no error";
  } catch (const DataError& error) {
    return error.what();
  }
}

TEST(Safetensors, ReadsWhatWasWritten) {
  const Safetensors file(written_file(), "x");
  EXPECT_THAT(file.names(), ElementsAre("conv1.weight", "conv1.bias", "empty"))
      << "as they lie in the file";
  EXPECT_THAT(file.values("conv1.weight"), ElementsAre(1, -2, 3.5F, 0, 1e-30F, 6));
  EXPECT_THAT(file.shape("conv1.weight"), ElementsAre(2, 3));
  EXPECT_TRUE(file.values("empty").empty());
  EXPECT_EQ(file.metadata().at("step"), "12");
  EXPECT_THROW(file.values("conv2.weight"), DataError);
}

TEST(Safetensors, ValuesBeginAtAMultipleOfEightBytes) {
  const std::string bytes = written_file();
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0U);
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string bytes = written_file();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THAT(error_of(bytes.substr(0, length)),
                HasSubstr("x.safetensors is not a whole safetensors file"))
        << length;
  }
}

TEST(Safetensors, RefusesHeadersThatLie) {
  EXPECT_THAT(error_of(with_header("{", 0)), HasSubstr("its header cannot be read"));
  EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 4)),
              HasSubstr("a is not of type F32"));
  EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)),
              HasSubstr("the values of a do not fit"));
  EXPECT_THAT(
      error_of(with_header(
          R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0)),
      HasSubstr("the values of a do not fit"));
  EXPECT_THAT(
      error_of(with_header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[4,0]}})", 4)),
      HasSubstr("the values of a do not fit"));
}

TEST(Safetensors, RefusesOverlappingAndShiftedOffsets) {
  const auto pair = [](const char* first, const char* second) {
    return std::string(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)") + first +
           R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + second + "}}";
  };
  const std::string whole = pair("[0,4]", "[4,8]");
  EXPECT_EQ(error_of(with_header(whole, 8)), "no error");
  EXPECT_EQ(error_of(with_header(pair("[4,8]", "[0,4]"), 8)), "no error") << "in another order";
  const std::string refused = "x.safetensors is not a whole safetensors file: ";
  EXPECT_EQ(error_of(with_header(pair("[0,4]", "[0,4]"), 8)),
            refused + "values begin at byte 0; expected 4");
  EXPECT_EQ(error_of(with_header(pair("[0,4]", "[8,12]"), 12)),
            refused + "values begin at byte 8; expected 4");
  EXPECT_EQ(error_of(with_header(pair("[4,8]", "[8,12]"), 12)),
            refused + "values begin at byte 4; expected 0");
  EXPECT_EQ(error_of(with_header(whole, 9)), refused + "its values end at byte 8 of 9");
}

/// A flipped bit in the padding, or in the name of the checksum, has no effect on the values.
TEST(Safetensors, AnyFlippedBitOfTheContentIsNoticed) {
  const std::string whole = written_file();
  const Safetensors original(whole, "x");
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    try {
      const Safetensors taken(flipped, "x");
      ASSERT_EQ(taken.names(), original.names()) << bit;
      for (const std::string& name : original.names()) {
        EXPECT_EQ(taken.values(name), original.values(name)) << bit;
        EXPECT_EQ(taken.shape(name), original.shape(name)) << bit;
      }
      EXPECT_EQ(taken.metadata().at("step"), "12") << bit;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(8 * whole.size()) - 100);
}

TEST(Safetensors, NamesTheChecksumThatDoesNotFit) {
  std::string bytes = written_file();
  EXPECT_FALSE(Safetensors(bytes, "x").metadata().contains("crc32")) << "the reader takes it";
  const std::size_t digits = bytes.find("\"crc32\":\"") + 9;
  const std::string expected = bytes.substr(digits, 8);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  EXPECT_THAT(error_of(bytes), testing::EndsWith("; expected " + expected));
}

TEST(Safetensors, TakesAFileWithoutAChecksum) {
  const std::array<float, 1> bias{7};
  const std::string bytes = encode_safetensors({}, std::array{NamedTensor{"bias", {1}, bias}});
  EXPECT_THAT(Safetensors(bytes, "x").values("bias"), ElementsAre(7));
}

TEST(Safetensors, NeverCrashesOnRandomDamage) {
  constexpr std::uint64_t seed = 20;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  const std::string whole = written_file();
  for (int i = 0; i < 5'000; ++i) {
    std::string damaged = whole;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    try {
      Safetensors(damaged, "x");
    } catch (const DataError&) {
      continue;  // damage must not cause any other error
    }
  }
}

}  // namespace
}  // namespace syncopate
