#include "train/micro_batcher.hpp"

#include <algorithm>
#include <utility>

namespace syncopate {
namespace {

template <class Value>
void append_rows(std::vector<Value>& into, const std::vector<Value>& from, std::size_t first,
                 std::size_t count) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
  into.insert(into.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

const Batch& MicroBatcher::next(std::uint32_t samples) {
  if (left() == 0) {
    begin_next();
  }
  const bool untouched = taken_ == 0;
  if (untouched && (samples == 0 || samples == whole_->samples())) {
    taken_ = whole_->samples();
    return *whole_;
  }
  part_.features.clear();
  part_.labels.clear();
  append(samples == 0 ? left() : std::min<std::size_t>(samples, left()));
  while (part_.samples() < samples) {
    begin_next();
    append(std::min<std::size_t>(samples - part_.samples(), left()));
  }
  return part_;
}

DataPosition MicroBatcher::position() const {
  if (!whole_) {
    return {.batch = batch_, .taken = skipped_};
  }
  return left() > 0 ? DataPosition{.batch = batch_, .taken = taken_}
                    : DataPosition{.batch = batch_ + 1};
}

void MicroBatcher::begin_next() {
  do {
    batch_ += whole_ ? 1 : 0;
    whole_ = &loader_.next();
  } while (whole_->samples() == 0 && empty_ == Empty::passed_over);
  taken_ = std::min<std::size_t>(std::exchange(skipped_, 0), whole_->samples());
}

void MicroBatcher::append(std::size_t samples) {
  const std::size_t values = whole_->shape.values();
  part_.shape = whole_->shape;
  append_rows(part_.features, whole_->features, taken_ * values, samples * values);
  append_rows(part_.labels, whole_->labels, taken_, samples);
  taken_ += samples;
}

}  // namespace syncopate
