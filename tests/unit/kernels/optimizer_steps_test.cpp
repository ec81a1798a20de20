// Goal:   the kernels that no update rule uses give the results of a plain loop, for every length
//         and alignment, and write to no other memory.
// Method: lengths 0 to 70 at offsets 0 to 3 are compared bit for bit with loops that round each
//         operation.

#include "kernels/optimizer_steps.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate {
namespace {

float rounded(float value) {
  const volatile float kept = value;
  return kept;
}

/// Calls check(offset, length) for all lengths and offsets.
template <class Check>
void for_parts(const Check& check) {
  for (std::size_t length = 0; length <= 70; ++length) {
    for (std::size_t offset = 0; offset < 4; ++offset) check(offset, length);
  }
}

std::vector<float> ramp(float slope) {
  std::vector<float> values;
  for (int i = 0; i < 80; ++i) values.push_back(slope * static_cast<float>(i) - 3);
  return values;
}

TEST(Kernels, ElasticExchangeKeepsTheSumAndLessensTheDifference) {
  for_parts([](std::size_t offset, std::size_t length) {
    std::vector<float> replica = ramp(0.37F);
    std::vector<float> centre = ramp(-0.11F);
    std::vector<float> expected_replica = replica;
    std::vector<float> expected_centre = centre;
    for (std::size_t i = offset; i < offset + length; ++i) {
      const float pull = rounded(0.3F * rounded(replica[i] - centre[i]));
      expected_centre[i] += pull;
      expected_replica[i] -= pull;
    }
    elastic_exchange(std::span(replica).subspan(offset, length),
                     std::span(centre).subspan(offset, length), 0.3);
    ASSERT_EQ(replica, expected_replica) << offset << " " << length;
    ASSERT_EQ(centre, expected_centre) << offset << " " << length;
  });
}

TEST(Kernels, AddScaledAddsAMultiple) {
  for_parts([](std::size_t offset, std::size_t length) {
    std::vector<float> into = ramp(0.37F);
    const std::vector<float> from = ramp(-0.11F);
    std::vector<float> expected = into;
    for (std::size_t i = offset; i < offset + length; ++i) expected[i] += rounded(0.7F * from[i]);
    add_scaled(std::span(into).subspan(offset, length), 0.7,
               std::span(from).subspan(offset, length));
    ASSERT_EQ(into, expected) << offset << " " << length;
  });
}

TEST(Kernels, AStepOfSgdTouchesItsBlockAlone) {
  for_parts([](std::size_t offset, std::size_t length) {
    std::vector<float> values = ramp(0.37F);
    const std::vector<float> gradient = ramp(-0.11F);
    std::vector<float> expected = values;
    for (std::size_t i = offset; i < offset + length; ++i) {
      expected[i] -= rounded(0.7F * rounded(0.3F * gradient[i]));
    }
    sgd_step({.values = std::span(values).subspan(offset, length),
              .gradient = std::span(gradient).subspan(offset, length),
              .scale = 0.3F},
             0.7);
    ASSERT_EQ(values, expected) << offset << " " << length;
  });
}

}  // namespace
}  // namespace syncopate
