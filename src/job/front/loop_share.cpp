#include <algorithm>
#include <utility>

#include "job/front/loop_member.hpp"
#include "job/launch/loop_config.hpp"
#include "job/program/loop_site.hpp"
#include "job/spec/job_plan.hpp"

namespace syncopate {

std::shared_ptr<LoopShare::Order> LoopJob::Member::share(std::uint64_t samples,
                                                         std::uint32_t batch_size) {
  const JobPlan plan(config(batch_size));
  const std::uint32_t own = plan.batch_sizes()[rank()];
  sizes_ = {.samples = samples,
            .batch_size = batch_size,
            .step_size = is_alone() ? own : samples_of_loop_step(plan.config(), own)};
  return std::make_shared<LoopShare::Order>(
      plan.feed(samples_without_values(samples).train, Rank{rank()}), sizes_->step_size);
}

LoopShare::LoopShare(std::shared_ptr<Order> order) : order_(std::move(order)) {}

std::size_t LoopShare::step_size() const {
  return order_->step_size();
}

std::vector<std::size_t> LoopShare::next() {
  return order_->next();
}

void LoopShare::next_epoch() {
  order_->next_epoch();
}

std::size_t LoopShare::epoch() const {
  return order_->epoch();
}

std::size_t LoopShare::step() const {
  return order_->step();
}

std::vector<std::size_t> LoopShare::Order::next() {
  if (ended_) {
    next_epoch();
  }
  if (in_batch_.empty() && !begin_batch()) {
    ended_ = true;
    return {};
  }
  std::vector<std::size_t> samples;
  while (!in_batch_.empty() && samples.size() < step_size_) {
    samples.push_back(in_batch_.back());
    in_batch_.pop_back();
  }
  ++step_;
  return samples;
}

/// Batches without samples, which fill up a worker's epoch, are skipped. False at its end.
bool LoopShare::Order::begin_batch() {
  while (in_batch_.empty() && batch_ < feed_.steps_per_epoch()) {
    const auto batch = feed_.batch({Epoch{epoch_}, batch_++});
    in_batch_.assign(batch.rbegin(), batch.rend());
  }
  return !in_batch_.empty();
}

void LoopShare::Order::next_epoch() {
  if (step_ == 0 && !ended_) {
    return;
  }
  ++epoch_;
  step_ = 0;
  batch_ = 0;
  in_batch_.clear();
  ended_ = false;
}

}  // namespace syncopate
