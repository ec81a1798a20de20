// Goal:   sizes in all usual notations are read exactly, to the byte.
// Method: examples of each unit, and of invalid units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "cli/bench/sizes.hpp"

namespace syncopate::cli {
namespace {

using testing::ElementsAre;

TEST(ReadSizeTest, TakesDecimalAndBinaryUnitsInEitherCase) {
  EXPECT_EQ(read_size("64"), 64U);
  EXPECT_EQ(read_size("64B"), 64U);
  EXPECT_EQ(read_size("1KB"), 1000U);
  EXPECT_EQ(read_size("1kb"), 1000U);
  EXPECT_EQ(read_size("100MiB"), 104'857'600U);
  EXPECT_EQ(read_size("2GB"), 2'000'000'000U);
  EXPECT_EQ(read_size("4GiB"), 4'294'967'296U);
}

TEST(ReadSizeTest, TakesPartsOfAUnitThatAreWholeBytes) {
  EXPECT_EQ(read_size("44.7MB"), 44'700'000U);
  EXPECT_EQ(read_size("44.695848MB"), 44'695'848U);
  EXPECT_EQ(read_size("0.5KiB"), 512U);
}

TEST(ReadSizeTest, RefusesWhatIsNoSize) {
  for (const char* text : {"", "KB", "five", "1KB2", "1 KB", "1e3", "0", "-4", "1.0001KB", "1TB",
                           "5GiB", "nan", "inf"}) {
    EXPECT_THROW(read_size(text), ConfigError) << text;
  }
}

TEST(ReadSizesTest, TakesMultiplesOfAUnit) {
  EXPECT_THAT(read_sizes("1KB,44.7MB", 4), ElementsAre(1000U, 44'700'000U));
  EXPECT_THAT(read_sizes("1", 1), ElementsAre(1U));
  EXPECT_THROW(read_sizes("1KB,1001", 4), ConfigError);
  EXPECT_THROW(read_sizes("1KB,,2KB", 4), ConfigError);
  EXPECT_THROW(read_sizes("", 4), ConfigError);
}

}  // namespace
}  // namespace syncopate::cli
