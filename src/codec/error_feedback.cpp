#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/error_feedback.cpp"
#include "codec/error_feedback.hpp"

#include <hwy/foreach_target.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "codec/codec_frame.hpp"
#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

/// into = values · factor + residual.
void correct(const float* values, float factor, const float* residual, float* into, size_t count) {
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::LoadU(tag, values + i), hn::Set(tag, factor));
    hn::StoreU(hn::Add(scaled, hn::LoadU(tag, residual + i)), tag, into + i);
  });
}

/// Sums of squares, lane by lane, so that float32 is precise enough.
template <class Tag>
struct Norms {
  hn::Vec<Tag> wanted;
  hn::Vec<Tag> lost;

  void add_to(double* norms) const {
    norms[0] += hn::GetLane(hn::SumOfLanes(Tag(), wanted));
    norms[1] += hn::GetLane(hn::SumOfLanes(Tag(), lost));
  }
};

/// residual = wanted − made, where finite, else 0.
template <class Tag>
HWY_INLINE void update_lanes(const float* wanted, const float* made, float* residual,
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
void update_residual(const float* wanted, const float* made, float* residual, size_t count,
                     double* norms) {
  using Wide = hn::ScalableTag<float>;
  using One = hn::CappedTag<float, 1>;
  const size_t width = hn::Lanes(Wide());
  Norms<Wide> most{hn::Zero(Wide()), hn::Zero(Wide())};
  size_t i = 0;
  for (; i + width <= count; i += width) {
    update_lanes(wanted + i, made + i, residual + i, most);
  }
  Norms<One> rest{hn::Zero(One()), hn::Zero(One())};
  for (; i < count; ++i) {
    update_lanes(wanted + i, made + i, residual + i, rest);
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
HWY_EXPORT(update_residual);

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
  if (commits_ == Commits::deferred) {
    after_.resize(before_.size());
  }
}

void ErrorFeedback::encode(std::span<const float> values, float factor, std::size_t first,
                           std::span<std::byte> frame, std::span<float> decoded) {
  std::vector<float>& after = commits_ == Commits::deferred ? after_ : before_;
  write_frame_header(*codec_, values.size(), frame);
  double wanted = 0;
  double lost = 0;
  for (const FrameBlock& block : blocks_of_frame(*codec_, values.size())) {
    const std::span<float> corrected = std::span(wanted_).first(block.values);
    const std::span<float> made = std::span(made_).first(block.values);
    const std::span<std::byte> bytes = frame.subspan(block.begin, block.bytes);
    const std::size_t offset = first + block.first;
    HWY_DYNAMIC_DISPATCH(correct)
    (values.data() + block.first, factor, before_.data() + offset, corrected.data(), block.values);
    codec_->encode(corrected, bytes);
    codec_->decode(bytes, made);
    double norms[2];
    HWY_DYNAMIC_DISPATCH(update_residual)
    (corrected.data(), made.data(), after.data() + offset, block.values, norms);
    wanted += norms[0];
    lost += norms[1];
    if (!decoded.empty()) {
      std::copy(made.begin(), made.end(), decoded.subspan(block.first).begin());
    }
  }
  if (commits_ == Commits::deferred) {
    encoded_.push_back({.first = first, .count = values.size()});
  }
  stats_.values += values.size();
  stats_.encoded_bytes += frame.size();
  stats_.error_sum += static_cast<double>(values.size()) * relative(lost, wanted);
}

/// A vector that was encoded as a whole costs no copy.
void ErrorFeedback::commit() {
  std::vector<Range> encoded = std::exchange(encoded_, {});
  std::ranges::sort(encoded, {}, &Range::first);
  std::size_t covered = 0;
  for (const Range& range : encoded) {
    covered = range.first <= covered ? std::max(covered, range.first + range.count) : covered;
  }
  if (!encoded.empty() && covered == before_.size()) {
    std::swap(before_, after_);
    return;
  }
  for (const Range& range : encoded) {
    std::ranges::copy(std::span(after_).subspan(range.first, range.count),
                      std::span(before_).subspan(range.first).begin());
  }
}

}  // namespace syncopate
#endif  // HWY_ONCE
