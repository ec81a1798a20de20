// Compiled once for each instruction set that Highway knows on this architecture; the best one that
// the CPU has is chosen at the first call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/error_feedback.cpp"
#include "codec/error_feedback.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "codec/codec_frame.hpp"

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

/// Sums of squares go by lanes, so that float32 is enough.
template <class Tag>
struct Norms {
  hn::Vec<Tag> wanted;
  hn::Vec<Tag> lost;

  void add_to(double* norms) const {
    norms[0] += hn::GetLane(hn::SumOfLanes(Tag(), wanted));
    norms[1] += hn::GetLane(hn::SumOfLanes(Tag(), lost));
  }
};

/// residual = wanted − made, where that is finite, else 0.
template <class Tag>
HWY_INLINE void settle_lanes(const float* wanted, const float* made, float* residual,
                             Norms<Tag>& norms) {
  const Tag tag;
  const auto x = hn::LoadU(tag, wanted);
  const auto difference = hn::Sub(x, hn::LoadU(tag, made));
  const auto lost = hn::IfThenElseZero(hn::IsFinite(difference), difference);
  hn::StoreU(lost, tag, residual);
  norms.wanted = hn::Add(norms.wanted, hn::Mul(x, x));
  norms.lost = hn::Add(norms.lost, hn::Mul(lost, lost));
}

/// `norms`: ‖wanted‖² and ‖residual‖².
void settle(const float* wanted, const float* made, float* residual, size_t count, double* norms) {
  using Wide = hn::ScalableTag<float>;
  using One = hn::CappedTag<float, 1>;
  const size_t width = hn::Lanes(Wide());
  Norms<Wide> most{hn::Zero(Wide()), hn::Zero(Wide())};
  size_t i = 0;
  for (; i + width <= count; i += width) {
    settle_lanes(wanted + i, made + i, residual + i, most);
  }
  Norms<One> rest{hn::Zero(One()), hn::Zero(One())};
  for (; i < count; ++i) {
    settle_lanes(wanted + i, made + i, residual + i, rest);
  }
  norms[0] = norms[1] = 0;
  most.add_to(norms);
  rest.add_to(norms);
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
      std::copy(made.begin(), made.end(), decoded.subspan(block.first).begin());
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
