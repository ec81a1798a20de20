#include "job/front/divided_samples.hpp"

#include <algorithm>
#include <numeric>

#include "base/errors.hpp"
#include "data/step_book.hpp"
#include "scheme/balance.hpp"

namespace syncopate {

std::span<const std::uint32_t> DividedSamples::next(Epoch epoch) {
  if (next_.epoch != epoch) {
    next_ = {.epoch = epoch};
  }
  const std::uint64_t steps = steps_of_epoch().value();
  if (next_.step == steps) {
    return {};
  }
  if (!run_ || run_->first != run_of(next_)) {
    run_ = await_run(run_of(next_));
  }
  if (!order_ || order_->epoch != epoch) {
    order_ = {epoch, whole_.part(Rank{0}, epoch)};
  }
  const std::uint64_t begin = next_.step * options_.global_batch;
  ++next_.step;
  const std::uint64_t end =
      next_.step == steps ? options_.dataset.samples : begin + options_.global_batch;
  const std::vector<double> weights(run_->parts.begin(), run_->parts.end());
  const std::vector<std::uint32_t> parts =
      divide(static_cast<std::uint32_t>(end - begin), weights, least_part_of_batch);
  const auto own = parts.begin() + to_member(job_)->rank();
  const std::uint64_t before = std::accumulate(parts.begin(), own, std::uint64_t{0});
  return std::span(order_->samples).subspan(begin + before, *own);
}

bool DividedSamples::restart(Epoch epoch) {
  next_ = {.epoch = epoch};
  return true;
}

/// A rest that has the least part for each worker is a step of its own.
std::optional<std::size_t> DividedSamples::steps_of_epoch() {
  const std::uint64_t whole = options_.dataset.samples / options_.global_batch;
  const std::uint64_t rest = options_.dataset.samples % options_.global_batch;
  return whole + (rest >= least_rest() ? 1 : 0);
}

std::uint32_t DividedSamples::least_rest() const {
  return least_part_of_batch * to_member(job_)->size();
}

/// Asks for the next run while the last step of this one is computed.
void DividedSamples::step_begins(std::size_t /*samples*/, std::size_t /*left*/) {
  if (!asked_ && next_.step < steps_of_epoch().value() && run_->first != run_of(next_)) {
    ask(run_of(next_));
  }
}

DividedSamples::Place DividedSamples::run_of(const Place& place) const {
  return {.epoch = place.epoch, .step = place.step / StepBook::run * StepBook::run};
}

void DividedSamples::ask(const Place& run) {
  const auto job = to_member(job_);
  job->node().ask(options_.dataset, {.worker = Rank{job->rank()},
                                     .epoch = run.epoch,
                                     .step = run.step,
                                     .parts = job->wanted_parts()});
  asked_ = run;
}

/// A loop that left an epoch early may have asked for another run.
DividedSamples::Run DividedSamples::await_run(const Place& run) {
  if (asked_ && *asked_ != run) {
    to_member(job_)->node().await_lease(options_.dataset);
    asked_.reset();
  }
  if (!asked_) {
    ask(run);
  }
  Lease answer = to_member(job_)->node().await_lease(options_.dataset);
  asked_.reset();
  if (answer.parts.size() != to_member(job_)->size()) {
    throw ProtocolError("the coordinator divides a step into parts for another number of workers");
  }
  return {.first = run, .parts = std::move(answer.parts)};
}

}  // namespace syncopate
