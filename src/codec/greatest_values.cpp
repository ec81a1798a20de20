#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/greatest_values.cpp"
#include "codec/greatest_values.hpp"

#include <hwy/foreach_target.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

/// Writes the indices of all values whose bits without the sign are `least` or more, and returns
/// their number. `indices` has room for the values and one vector more.
size_t indices_from(const float* from, size_t count, int32_t least, uint32_t* indices) {
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
      found += hn::CompressStore(at, hn::RebindMask(lanes, is_great), lanes, indices + found);
    }
  }
  for (; i < count; ++i) {
    int32_t bits;
    std::memcpy(&bits, from + i, sizeof(bits));
    indices[found] = static_cast<uint32_t>(i);
    found += (bits & 0x7fffffff) >= least ? 1 : 0;
  }
  return found;
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(indices_from);

namespace {

/// One in `stride` values is sampled to guess which are the greatest; odd, since values come in
/// rows of even lengths.
constexpr std::size_t stride = 31;
/// The widest vector of any CPU, in values.
constexpr std::size_t widest = 64;

std::uint32_t magnitude(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

/// The magnitude that `rank` of `magnitudes` reach.
std::uint32_t greatest_but(std::vector<std::uint32_t>& magnitudes, std::size_t rank) {
  const auto place = magnitudes.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(magnitudes.begin(), place, magnitudes.end(), std::greater<>());
  return *place;
}

}  // namespace

/// Guesses a magnitude that `wanted` values reach, and few more. It may be too large, so that fewer
/// reach it.
std::uint32_t GreatestValues::usual_least(std::span<const float> values, std::size_t wanted) {
  magnitudes_.clear();
  for (std::size_t i = 0; i < values.size(); i += stride) {
    magnitudes_.push_back(magnitude(values[i]));
  }
  // Three standard deviations above the expected number in the sample.
  const double share = static_cast<double>(wanted) / static_cast<double>(stride);
  const auto rank = static_cast<std::size_t>(share + 3 * std::sqrt(share)) + 2;
  return rank < magnitudes_.size() ? greatest_but(magnitudes_, rank) : 0;
}

std::size_t GreatestValues::collect(std::span<const float> values, std::uint32_t least) {
  indices_.resize(values.size() + widest);
  return HWY_DYNAMIC_DISPATCH(indices_from)(values.data(), values.size(),
                                            static_cast<std::int32_t>(least), indices_.data());
}

std::span<const std::uint32_t> GreatestValues::find(std::span<const float> values,
                                                    std::size_t wanted) {
  if (wanted == 0) {
    return {};
  }
  std::size_t found = collect(values, usual_least(values, wanted));
  if (found < wanted) {
    found = collect(values, 0);
  }
  const std::span<std::uint32_t> candidates(indices_.data(), found);
  magnitudes_.clear();
  for (const std::uint32_t index : candidates) {
    magnitudes_.push_back(magnitude(values[index]));
  }
  const std::uint32_t least = greatest_but(magnitudes_, wanted);
  const auto greater = std::count_if(magnitudes_.begin(), magnitudes_.end(),
                                     [&](auto each) { return each > least; });
  std::size_t equals = wanted - static_cast<std::size_t>(greater);
  std::size_t taken = 0;
  for (const std::uint32_t index : candidates) {
    const std::uint32_t size = magnitude(values[index]);
    if (size > least || (size == least && equals > 0)) {
      equals -= size == least ? 1 : 0;
      candidates[taken++] = index;
    }
  }
  return candidates.first(taken);
}

}  // namespace syncopate
#endif  // HWY_ONCE
