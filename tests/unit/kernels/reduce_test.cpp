// Goal:   the vectorised kernels compute what a plain loop does, at every length and alignment.
// Method: lengths 0 to 70 at offsets 0 to 3, compared bit for bit.

#include "kernels/reduce.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate {
namespace {

TEST(Reduce, AddsAndScalesLikeAPlainLoop) {
  for (std::size_t length = 0; length <= 70; ++length) {
    for (std::size_t offset = 0; offset < 4; ++offset) {
      std::vector<float> into(length + 4, 0.5F);
      std::vector<float> from(length + 4);
      for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = 0.1F * static_cast<float>(i);
      }
      add(std::span(into).subspan(offset, length), std::span(from).subspan(offset, length));
      scale(std::span(into).subspan(offset, length), 3.0F);
      scale_and_add(std::span(into).subspan(offset, length), 2.0F,
                    std::span(from).subspan(offset, length));
      for (std::size_t i = 0; i < into.size(); ++i) {
        const bool inside = i >= offset && i < offset + length;
        const float scaled = (0.5F + from[i]) * 3.0F;
        ASSERT_FLOAT_EQ(into[i], inside ? scaled * 2.0F + from[i] : 0.5F) << i << " of " << length;
      }
    }
  }
}

}  // namespace
}  // namespace syncopate
