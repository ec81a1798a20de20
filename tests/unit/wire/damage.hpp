#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/errors.hpp"
#include "base/random.hpp"

/// Damage that a decoder must survive.
namespace syncopate::wire {

/// Gives `decode` each truncation of `good` and `rounds` variants of it with bits flipped, bytes
/// cut out and bytes put in. It must return, or throw ProtocolError.
template <class Decode>
void expect_survives_damage(const std::vector<std::byte>& good, Decode decode, std::uint64_t seed,
                            int rounds) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const auto survives = [&](std::span<const std::byte> bytes) {
    try {
      decode(bytes);
    } catch (const ProtocolError&) {
      // ProtocolError is the documented result of damage; any other exception fails the test.
    }
  };
  for (std::size_t length = 0; length <= good.size(); ++length) {
    EXPECT_NO_THROW(survives(std::span(good).first(length))) << "cut to " << length;
  }
  Random random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::byte> bytes = good;
    for (std::uint64_t hit = 1 + random.below(6); hit > 0 && !bytes.empty(); --hit) {
      const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size()));
      switch (random.below(3)) {
        case 0: *at ^= std::byte{1} << random.below(8); break;
        case 1: bytes.erase(at); break;
        default: bytes.insert(at, static_cast<std::byte>(random.bits())); break;
      }
    }
    EXPECT_NO_THROW(survives(bytes)) << "round " << round;
  }
}

}  // namespace syncopate::wire
