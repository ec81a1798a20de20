#include "scheme/round_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {

void RoundBook::finished_mini_batch(Round read) {
  read_.push_back(read);
  of_batch_ = (of_batch_ + 1) % mini_batches_;
  batch_finished_ |= of_batch_ == 0;
}

void RoundBook::heard(Round round) {
  signalled_ = std::max(signalled_, round);
}

bool RoundBook::own_rule_holds() const {
  return hurried_ || (rule_ == SignalRule::batch ? batch_finished_ : read_.size() >= mini_batches_);
}

RoundBook::Contribution RoundBook::contribute() {
  if (!std::exchange(reduced_, false)) {
    throw InternalError(fmt::format(
        "a contribution to round {} before the allreduce of the last was complete", open_.value));
  }
  Contribution contribution{.round = open_, .staleness = {}};
  for (const Round read : std::exchange(read_, {})) {
    contribution.staleness.push_back(open_.value - 1 - read.value);
  }
  open_.value = std::max(open_, signalled_).value + 1;
  batch_finished_ = false;
  hurried_ = false;
  return contribution;
}

bool RoundDrain::contributes() {
  spans_rounds_ = book_.booked() == 0;
  return paused_ || !spans_rounds_;
}

bool RoundDrain::reduced(const Agreed& agreed) {
  book_.reduced();
  pending_ |= agreed.checkpoint;
  const bool checkpoint = pending_ && drains();
  if (drains()) {
    paused_ = stopped_;
    pending_ = false;
  }
  drains_ = agreed.next_is_last || (pending_ && agreed.all_ready);
  if (stopped_ || (drains_ && paused_)) {
    book_.hurry();
  }
  return checkpoint;
}

void RoundDrain::stop() {
  stopped_ = paused_ = true;
  book_.hurry();
}

bool RoundDrain::pauses() {
  if (every_round_ && !paused_ && book_.booked() == 0) {
    return false;  // the others wait for a mini-batch of it, however early they signal
  }
  const bool begins = !paused_ && (drains() ? book_.due() : pending_ && spans_rounds_);
  if (begins && !drains()) {
    book_.hurry();
  }
  paused_ |= begins;
  return paused_;
}

}  // namespace syncopate
