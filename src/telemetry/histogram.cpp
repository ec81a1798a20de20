#include "telemetry/histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/errors.hpp"

namespace syncopate {
namespace {

constexpr std::uint64_t exact = 64;
constexpr int bits_kept = 5;  ///< after the first: 32 buckets in a power of two
constexpr std::uint64_t buckets_per_power = 1U << bits_kept;
constexpr int first_power = 6;  ///< exact = 2^6

/// The bucket that counts `value`: from `exact` on, its power of two and the next bits determine
/// it.
std::size_t bucket_of(std::uint64_t value) {
  if (value < exact) return value;
  const int power = static_cast<int>(std::bit_width(value)) - 1;
  const std::uint64_t place = (value >> (power - bits_kept)) - buckets_per_power;
  return exact + static_cast<std::uint64_t>(power - first_power) * buckets_per_power + place;
}

std::uint64_t least_of(std::size_t bucket) {
  if (bucket < exact) return bucket;
  const std::uint64_t beyond = bucket - exact;
  const std::uint64_t shift = beyond / buckets_per_power + first_power - bits_kept;
  return (buckets_per_power + beyond % buckets_per_power) << shift;
}

}  // namespace

void Histogram::add(std::uint64_t value) {
  count_in(bucket_of(value), 1);
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value);
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t bucket = 0; bucket < other.counts_.size(); ++bucket) {
    if (other.counts_[bucket] > 0) count_in(bucket, other.counts_[bucket]);
  }
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

std::uint64_t Histogram::quantile(double p) const {
  const double wanted = std::ceil(p * static_cast<double>(count_));
  if (wanted >= static_cast<double>(count_)) return max_;
  std::size_t bucket = 0;
  for (std::uint64_t seen = 0; bucket < counts_.size(); ++bucket) {
    seen += counts_[bucket];
    if (seen > 0 && static_cast<double>(seen) >= wanted) break;
  }
  return least_of(bucket);
}

double Histogram::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

Histogram::Parts Histogram::parts() const {
  Parts parts{.buckets = {}, .max = max_, .sum = sum_};
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    if (counts_[bucket] > 0) parts.buckets.push_back({least_of(bucket), counts_[bucket]});
  }
  return parts;
}

Histogram Histogram::from(const Parts& parts) {
  Histogram histogram;
  for (const Bucket& bucket : parts.buckets)
    histogram.count_in(bucket_of(bucket.least), bucket.count);
  histogram.max_ = parts.max;
  histogram.sum_ = parts.sum;
  const bool fits = bucket_of(parts.max) + 1 == std::max(std::size_t{1}, histogram.counts_.size());
  if (!fits || !(parts.sum >= 0) || histogram.parts() != parts) {
    throw ProtocolError(fmt::format(
        "histogram of {} buckets, greatest value {}, sum {}: no such histogram can be made",
        parts.buckets.size(), parts.max, parts.sum));
  }
  return histogram;
}

void Histogram::count_in(std::size_t bucket, std::uint64_t count) {
  if (bucket >= counts_.size()) counts_.resize(bucket + 1);
  counts_[bucket] += count;
  count_ += count;
}

}  // namespace syncopate
