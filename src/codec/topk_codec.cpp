// Compiled once for each instruction set that Highway knows on this architecture; the best one that
// the CPU has is chosen at the first call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/topk_codec.cpp"
#include "codec/topk_codec.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/errors.hpp"
#include "codec/half_codecs.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Writes the places of all values whose bits without their signs are `least` or more, and returns how many
/// they are. `places` has room for a vector more than values.
size_t places_from(const float* from, size_t count, int32_t least, uint32_t* places) {
  const hn::ScalableTag<uint32_t> lanes;
  const hn::RebindToSigned<decltype(lanes)> whole;
  const hn::RebindToFloat<decltype(lanes)> floats;
  const size_t width = hn::Lanes(lanes);
  const auto bound = hn::Set(whole, least - 1);
  size_t found = 0;
  size_t i = 0;
  for (; i + width <= count; i += width) {
    const auto magnitude = hn::BitCast(whole, hn::Abs(hn::LoadU(floats, from + i)));
    const auto is_great = hn::Gt(magnitude, bound);
    if (!hn::AllFalse(whole, is_great)) {
      const auto at = hn::Iota(lanes, static_cast<uint32_t>(i));
      found += hn::CompressStore(at, hn::RebindMask(lanes, is_great), lanes, places + found);
    }
  }
  for (; i < count; ++i) {
    int32_t bits;
    std::memcpy(&bits, from + i, sizeof(bits));
    places[found] = static_cast<uint32_t>(i);
    found += (bits & 0x7fffffff) >= least ? 1 : 0;
  }
  return found;
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(places_from);

namespace {

/// Of how many values one is looked at, to guess what the greatest are; odd, since values come in rows of
/// even lengths.
constexpr std::size_t stride = 31;
/// The widest vector of any CPU, in values.
constexpr std::size_t widest = 64;

std::uint32_t magnitude(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

/// The magnitude that as many as `rank` of them are greater than, or equal to.
std::uint32_t greatest_but(std::vector<std::uint32_t>& magnitudes, std::size_t rank) {
  const auto place = magnitudes.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(magnitudes.begin(), place, magnitudes.end(), std::greater<>());
  return *place;
}

}  // namespace

std::size_t TopkCodec::kept(std::size_t values) const {
  return static_cast<std::size_t>(std::ceil(ratio_ * static_cast<double>(values)));
}

/// A magnitude that `wanted` values reach, and most likely few more. A guess: they may be fewer.
std::uint32_t TopkCodec::usual_least(std::span<const float> block, std::size_t wanted) {
  magnitudes_.clear();
  for (std::size_t i = 0; i < block.size(); i += stride) {
    magnitudes_.push_back(magnitude(block[i]));
  }
  // Three standard deviations more than there should be among those that are looked at.
  const double share = static_cast<double>(wanted) / static_cast<double>(stride);
  const auto rank = static_cast<std::size_t>(share + 3 * std::sqrt(share)) + 2;
  return rank < magnitudes_.size() ? greatest_but(magnitudes_, rank) : 0;
}

std::size_t TopkCodec::collect(std::span<const float> block, std::uint32_t least) {
  places_.resize(block.size() + widest);
  return HWY_DYNAMIC_DISPATCH(places_from)(block.data(), block.size(),
                                           static_cast<std::int32_t>(least), places_.data());
}

void TopkCodec::encode(std::span<const float> block, std::span<std::byte> into) {
  const std::size_t wanted = kept(block.size());
  std::size_t found = collect(block, usual_least(block, wanted));
  if (found < wanted) {
    found = collect(block, 0);
  }
  const std::span<const std::uint32_t> candidates(places_.data(), found);
  magnitudes_.clear();
  for (const std::uint32_t place : candidates) {
    magnitudes_.push_back(magnitude(block[place]));
  }
  const std::uint32_t least = greatest_but(magnitudes_, wanted);
  const auto greater = std::count_if(magnitudes_.begin(), magnitudes_.end(),
                                     [&](auto each) { return each > least; });
  std::size_t equals = wanted - static_cast<std::size_t>(greater);
  auto* const places = reinterpret_cast<std::uint16_t*>(into.data());
  std::size_t taken = 0;
  for (const std::uint32_t place : candidates) {
    const std::uint32_t size = magnitude(block[place]);
    if (size > least || (size == least && equals > 0)) {
      equals -= size == least ? 1 : 0;
      places[taken] = static_cast<std::uint16_t>(place);
      places[wanted + taken] = to_bf16(block[place]);
      ++taken;
    }
  }
}

void TopkCodec::decode(std::span<const std::byte> from, std::span<float> block) const {
  const std::size_t count = kept(block.size());
  const auto* const places = reinterpret_cast<const std::uint16_t*>(from.data());
  std::fill(block.begin(), block.end(), 0.0F);
  std::size_t least = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (places[i] < least || places[i] >= block.size()) {
      throw ProtocolError(
          "values compressed by topk have places that do not ascend, or lie beyond their block");
    }
    least = places[i] + std::size_t{1};
    block[places[i]] = from_bf16(places[count + i]);
  }
}

}  // namespace syncopate
#endif  // HWY_ONCE
