#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace syncopate {

/// Seeded random numbers that are the same on every platform and compiler.
///
/// The generator is xoshiro256** (Blackman & Vigna 2018), seeded through splitmix64. The
/// distributions are our own because those of the standard library differ between libraries.
class Random {
 public:
  explicit Random(std::uint64_t seed);

  /// A separate stream for `purpose`, which does not depend on the numbers drawn from this one.
  Random fork(std::string_view purpose, std::uint64_t index = 0) const;

  std::uint64_t bits();
  /// Uniform in [0, 1), with 53 random bits.
  double uniform();
  /// Uniform in [0, bound), without bias (Lemire 2019). `bound` is at least 1.
  std::uint64_t below(std::uint64_t bound);
  /// Standard normal (Box & Muller 1958).
  double normal();

  /// Permutes `values` uniformly (Fisher & Yates).
  template <class Value>
  void shuffle(std::span<Value> values) {
    for (std::size_t left = values.size(); left > 1; --left) {
      std::swap(values[left - 1], values[below(left)]);
    }
  }

 private:
  std::uint64_t seed_;
  std::array<std::uint64_t, 4> state_;
};

/// 128 random bits of the system, in hexadecimal, which no other process can guess.
std::string unguessable_token();

}  // namespace syncopate
