#include "report/counts.hpp"

namespace syncopate {

wire::Counts to_wire(const Histogram& histogram) {
  const Histogram::Parts parts = histogram.parts();
  wire::Counts counts;
  for (const Histogram::Bucket& bucket : parts.buckets) {
    wire::Counts::Bucket& sent = *counts.add_buckets();
    sent.set_least(bucket.least);
    sent.set_count(bucket.count);
  }
  counts.set_max(parts.max);
  counts.set_sum(parts.sum);
  return counts;
}

Histogram from_wire(const wire::Counts& counts) {
  Histogram::Parts parts{.buckets = {}, .max = counts.max(), .sum = counts.sum()};
  for (const wire::Counts::Bucket& bucket : counts.buckets()) {
    parts.buckets.push_back({.least = bucket.least(), .count = bucket.count()});
  }
  return Histogram::from(parts);
}

}  // namespace syncopate
