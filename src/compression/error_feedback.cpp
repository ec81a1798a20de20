// Compiled once for each instruction set that Highway knows on this architecture; the best one that
// the CPU has is chosen at the first call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/error_feedback.cpp"
#include "compression/error_feedback.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "compression/frame.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// into = values · factor + e.
template <class Tag>
HWY_INLINE void correct_lanes(Tag tag, const float* values, float factor, const float* residual,
                              float* into) {
  const auto scaled = hn::Mul(hn::LoadU(tag, values), hn::Set(tag, factor));
  hn::StoreU(hn::Add(scaled, hn::LoadU(tag, residual)), tag, into);
}

void correct(const float* values, float factor, const float* residual, float* into, size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    correct_lanes(lanes, values + i, factor, residual + i, into + i);
  }
  for (; i < count; ++i) {
    correct_lanes(hn::CappedTag<float, 1>(), values + i, factor, residual + i, into + i);
  }
}

/// residual = wanted − made, where that is finite, else 0. Sums go by lanes, so that float32 is enough.
template <class Tag>
HWY_INLINE void settle_lanes(Tag tag, const float* wanted, const float* made, float* residual,
                             hn::Vec<Tag>& sum, hn::Vec<Tag>& sum_lost) {
  const auto x = hn::LoadU(tag, wanted);
  const auto difference = hn::Sub(x, hn::LoadU(tag, made));
  const auto lost = hn::IfThenElseZero(hn::IsFinite(difference), difference);
  hn::StoreU(lost, tag, residual);
  sum = hn::Add(sum, hn::Mul(x, x));
  sum_lost = hn::Add(sum_lost, hn::Mul(lost, lost));
}

/// `norms`: ‖wanted‖² and ‖residual‖².
void settle(const float* wanted, const float* made, float* residual, size_t count, double* norms) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  auto sum = hn::Zero(lanes);
  auto sum_lost = hn::Zero(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    settle_lanes(lanes, wanted + i, made + i, residual + i, sum, sum_lost);
  }
  const hn::CappedTag<float, 1> one;
  auto rest = hn::Zero(one);
  auto rest_lost = hn::Zero(one);
  for (; i < count; ++i) {
    settle_lanes(one, wanted + i, made + i, residual + i, rest, rest_lost);
  }
  norms[0] = hn::GetLane(hn::SumOfLanes(lanes, sum)) + hn::GetLane(rest);
  norms[1] = hn::GetLane(hn::SumOfLanes(lanes, sum_lost)) + hn::GetLane(rest_lost);
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(correct);
HWY_EXPORT(settle);

namespace {

/// A block stays in the second-level cache from the first pass to the last.
constexpr std::size_t block_values = Codec::block_values;

double relative(double lost, double wanted) {
  return wanted > 0 && std::isfinite(wanted) ? std::sqrt(lost / wanted) : 0;
}

}  // namespace

double CompressionStats::ratio() const {
  return encoded_bytes > 0
             ? static_cast<double>(values * sizeof(float)) / static_cast<double>(encoded_bytes)
             : 0;
}

double CompressionStats::error() const {
  return values > 0 ? error_sum / static_cast<double>(values) : 0;
}

ErrorFeedback::ErrorFeedback(const Compression& compression, Commits commits)
    : codec_(make_codec(compression)),
      commits_(commits),
      wanted_(block_values),
      made_(block_values) {}

void ErrorFeedback::reserve(std::size_t values) {
  before_.resize(std::max(before_.size(), values));
  if (commits_ == Commits::when_told) {
    after_.resize(before_.size());
  }
}

void ErrorFeedback::encode(std::span<const float> values, float factor, std::size_t first,
                           std::span<std::byte> frame, std::span<float> decoded) {
  std::vector<float>& after = commits_ == Commits::when_told ? after_ : before_;
  write_frame_head(*codec_, values.size(), frame);
  double wanted = 0;
  double lost = 0;
  for (const FrameBlock& block : blocks_of_frame(*codec_, values.size())) {
    const std::span<float> corrected = std::span(wanted_).first(block.values);
    const std::span<float> made = std::span(made_).first(block.values);
    const std::span<std::byte> bytes = frame.subspan(block.begin, block.bytes);
    const std::size_t place = first + block.first;
    HWY_DYNAMIC_DISPATCH(correct)
    (values.data() + block.first, factor, before_.data() + place, corrected.data(), block.values);
    codec_->encode(corrected, bytes);
    codec_->decode(bytes, made);
    double norms[2];
    HWY_DYNAMIC_DISPATCH(settle)
    (corrected.data(), made.data(), after.data() + place, block.values, norms);
    wanted += norms[0];
    lost += norms[1];
    if (!decoded.empty()) {
      std::copy(made.begin(), made.end(), decoded.begin() + block.first);
    }
  }
  stats_.values += values.size();
  stats_.encoded_bytes += frame.size();
  stats_.error_sum += static_cast<double>(values.size()) * relative(lost, wanted);
}

void ErrorFeedback::commit() {
  if (commits_ == Commits::when_told) {
    std::swap(before_, after_);
  }
}

void add_decoded(std::span<float> into, std::span<const float> from) {
  HWY_DYNAMIC_DISPATCH(correct)(from.data(), 1, into.data(), into.data(), into.size());
}

}  // namespace syncopate
#endif  // HWY_ONCE
