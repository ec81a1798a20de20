#include "scheme/bucket_book.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"

namespace syncopate {

BucketTracker::BucketTracker(std::size_t values, std::size_t buckets) {
  std::size_t end = values;
  for (std::size_t left = buckets; left > 0; --left) {
    const std::size_t begin = values / buckets * (left - 1);
    buckets_.push_back({begin, end});
    end = begin;
  }
  begin();
}

void BucketTracker::begin() {
  missing_.clear();
  for (const Bucket& bucket : buckets_) {
    missing_.push_back(bucket.end - bucket.begin);
  }
  complete_ = 0;
}

void BucketTracker::mark_ready(std::size_t begin, std::size_t end) {
  for (std::size_t i = 0; i < size(); ++i) {
    const std::size_t first = std::max(begin, buckets_[i].begin);
    const std::size_t last = std::min(end, buckets_[i].end);
    const std::size_t values = first < last ? last - first : 0;
    if (values > missing_[i]) {
      throw InternalError(
          fmt::format("values {} to {} of a gradient were told twice", first, last));
    }
    missing_[i] -= values;
  }
  while (complete_ < size() && missing_[complete_] == 0) {
    ++complete_;
  }
}

}  // namespace syncopate
