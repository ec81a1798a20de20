#include "base/random.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <numbers>
#include <random>

namespace syncopate {
namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

/// FNV-1a: spreads a purpose's name over 64 bits.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char character : text) {
    value = (value ^ static_cast<unsigned char>(character)) * 0x100000001b3;
  }
  return value;
}

}  // namespace

Random::Random(std::uint64_t seed) : seed_(seed), state_{} {
  for (auto& word : state_) {
    word = splitmix64(seed);
  }
}

Random Random::fork(std::string_view purpose, std::uint64_t index) const {
  std::uint64_t mixed = seed_ ^ hash(purpose);
  const std::uint64_t stream = splitmix64(mixed) + index;
  return Random(stream);
}

std::uint64_t Random::bits() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() {
  return static_cast<double>(bits() >> 11) * 0x1.0p-53;
}

std::uint64_t Random::below(std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  Wide product = Wide{bits()} * bound;
  // Products whose low half falls under the threshold belong to values drawn once too often.
  const std::uint64_t threshold = (0 - bound) % bound;
  while (static_cast<std::uint64_t>(product) < threshold) {
    product = Wide{bits()} * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

std::string unguessable_token() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", source(), source(), source(), source());
}

}  // namespace syncopate
