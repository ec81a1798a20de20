// Goal:   in_blocks covers a vector exactly once, in order, in blocks of at most `values_of_block`.
// Method: lengths around one and two blocks.

#include "kernels/blocks.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

TEST(InBlocks, CoversAVectorOnceInOrder) {
  constexpr std::size_t whole = values_of_block;
  using Blocks = std::vector<std::pair<std::size_t, std::size_t>>;
  const auto blocks_of = [](std::size_t values) {
    Blocks blocks;
    in_blocks(values,
              [&](std::size_t first, std::size_t count) { blocks.emplace_back(first, count); });
    return blocks;
  };
  EXPECT_EQ(blocks_of(0), Blocks{});
  EXPECT_EQ(blocks_of(1), (Blocks{{0, 1}}));
  EXPECT_EQ(blocks_of(whole), (Blocks{{0, whole}}));
  EXPECT_EQ(blocks_of(2 * whole + 3),
            (Blocks{{0, whole}, {whole, whole}, {2 * whole, std::size_t{3}}}));
}

}  // namespace
}  // namespace syncopate
