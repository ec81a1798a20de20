// Goal:   a block that is too long for one message is sent in parts and arrives whole.
// Method: closed values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "collective/basic_collectives.hpp"

namespace syncopate {
namespace {

using Parts = std::vector<std::pair<std::size_t, std::size_t>>;

Parts parts_of(std::size_t bytes) {
  Parts parts;
  in_parts(
      bytes, [&](std::size_t begin, std::size_t count) { parts.emplace_back(begin, count); },
      /*longest=*/10);
  return parts;
}

TEST(MessageParts, CoverABlockInOrder) {
  EXPECT_EQ(parts_of(0), (Parts{{0, 0}}));
  EXPECT_EQ(parts_of(10), (Parts{{0, 10}}));
  EXPECT_EQ(parts_of(21), (Parts{{0, 10}, {10, 10}, {20, 1}}));
}

}  // namespace
}  // namespace syncopate
