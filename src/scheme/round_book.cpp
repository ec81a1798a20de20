#include "scheme/round_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {

std::uint64_t RoundBook::finished_mini_batch() {
  ++booked_;
  of_batch_ = (of_batch_ + 1) % mini_batches_;
  batch_finished_ |= of_batch_ == 0;
  return last_applied_ ? 0 : 1;
}

void RoundBook::heard(Round round) {
  signalled_ = std::max(signalled_, round);
}

bool RoundBook::due() const {
  return (batch_finished_ || signalled()) && booked_ > 0 && last_applied_;
}

RoundBook::Contribution RoundBook::contribute() {
  if (!std::exchange(last_applied_, false)) {
    throw InternalError(
        fmt::format("a contribution to round {} before the sum of the last came", open_.value));
  }
  const Contribution contribution{.round = open_, .mini_batches = std::exchange(booked_, 0)};
  open_.value = std::max(open_, signalled_).value + 1;
  batch_finished_ = false;
  return contribution;
}

}  // namespace syncopate
