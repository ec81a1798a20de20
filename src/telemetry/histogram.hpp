#pragma once

#include <cstdint>
#include <vector>

namespace syncopate {

/// Counts non-negative integers in bounded memory (at most 1,920 counts).
///
/// Each value below 64 has its own bucket; above, each power of two is divided into 32 buckets, so
/// that the least value of a bucket is at most 1/32 below every value in it.
///
/// Thread: one at a time.
class Histogram {
 public:
  struct Bucket {
    std::uint64_t least = 0;  ///< of the values that it counts
    std::uint64_t count = 0;

    friend bool operator==(const Bucket&, const Bucket&) = default;
  };

  void add(std::uint64_t value);
  /// Adds all values of `other`.
  void merge(const Histogram& other);

  std::uint64_t count() const { return count_; }
  /// The smallest value that at least max(1, `p` · count) values do not exceed, rounded down to the
  /// least value of its bucket; the greatest value is exact. `p` is from 0 to 1: 0.5 for the
  /// median. 0 without values.
  std::uint64_t quantile(double p) const;
  /// The greatest value, exactly; 0 without values.
  std::uint64_t max() const { return max_; }
  /// Exact, except for float64 rounding; 0 without values.
  double mean() const;

  /// A histogram as plain values: buckets that are not empty, in ascending order.
  struct Parts {
    std::vector<Bucket> buckets;
    std::uint64_t max = 0;
    double sum = 0;

    friend bool operator==(const Parts&, const Parts&) = default;
  };
  Parts parts() const;
  /// The histogram that `parts` were taken from.
  /// Errors: ProtocolError if no histogram can have these parts.
  static Histogram from(const Parts& parts);

 private:
  void count_in(std::size_t bucket, std::uint64_t count);

  std::vector<std::uint64_t> counts_;  ///< by bucket, up to the last one in use
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace syncopate
