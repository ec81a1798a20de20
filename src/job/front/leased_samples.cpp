#include "job/front/leased_samples.hpp"

#include "base/errors.hpp"

namespace syncopate {

std::span<const std::uint32_t> LeasedSamples::next(Epoch epoch) {
  // A loop that has left an epoch early leaves its leases of it, too.
  while (!lease_ || lease_->epoch < epoch) {
    if (!asked_) {
      ask(epoch);
    }
    lease_ = await_lease();
  }
  if (lease_->epoch > epoch) {
    return {};
  }
  if (!order_ || order_->epoch != epoch) {
    order_ = {epoch, whole_.part(Rank{0}, epoch)};
  }
  const Lease lease = *std::exchange(lease_, std::nullopt);
  return std::span(order_->samples).subspan(lease.begin, lease.samples());
}

void LeasedSamples::step_begins(std::size_t samples, std::size_t left) {
  step_ = {samples, job()->node().now()};
  options_.step_size = options_.sizes_change ? samples : options_.step_size;
  if (left <= options_.step_size && !asked_) {
    ask(order_->epoch);
  }
}

void LeasedSamples::step_ended() {
  if (const auto step = std::exchange(step_, std::nullopt)) {
    trained_ += step->samples;
    taken_ += job()->node().now() - step->since;
  }
}

void LeasedSamples::ask(Epoch epoch) {
  job()->node().ask(options_.dataset, {.worker = Rank{job()->rank()},
                                       .epoch = epoch,
                                       .step_size = options_.step_size,
                                       .trained = std::exchange(trained_, 0),
                                       .taken = std::exchange(taken_, Duration::zero())});
  asked_ = true;
}

Lease LeasedSamples::await_lease() {
  const Lease lease = job()->node().await_lease(options_.dataset);
  asked_ = false;
  return lease;
}

}  // namespace syncopate
