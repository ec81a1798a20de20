#include "train/batch_cutter.hpp"

#include <algorithm>

namespace syncopate {
namespace {

template <class Value>
void assign_rows(std::vector<Value>& into, const std::vector<Value>& from, std::size_t first,
                 std::size_t count) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
  into.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

const Batch& BatchCutter::next(std::uint32_t most) {
  if (!whole_ || taken_ >= whole_->samples()) {
    begin_next();
  }
  const std::size_t left = whole_->samples() - taken_;
  const std::size_t samples = most == 0 ? left : std::min<std::size_t>(most, left);
  if (samples == whole_->samples()) {
    taken_ = samples;
    return *whole_;
  }
  cut(samples);
  return part_;
}

void BatchCutter::begin_next() {
  do {
    whole_ = &loader_.next();
  } while (whole_->samples() == 0 && empty_ == Empty::passed_over);
  taken_ = 0;
}

void BatchCutter::cut(std::size_t samples) {
  const std::size_t values = whole_->shape.values();
  part_.shape = whole_->shape;
  assign_rows(part_.features, whole_->features, taken_ * values, samples * values);
  assign_rows(part_.labels, whole_->labels, taken_, samples);
  taken_ += samples;
}

}  // namespace syncopate
