#include "data/lease_book.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"

namespace syncopate {
namespace {

/// The number of leases that divide a worker's expected part of the samples that are left. With
/// more leases workers end an epoch closer together, at the cost of more requests: about 4 ln(steps
/// of a worker / 4), and a few single steps.
constexpr double leases_of_a_part = 4;

/// Weight of a new measurement of a speed beside those before.
constexpr double smoothing = 0.5;

void remove_first(std::deque<Lease>& held, std::uint64_t samples) {
  while (samples > 0 && !held.empty()) {
    Lease& first = held.front();
    const std::uint64_t removed = std::min(samples, first.samples());
    first.begin += removed;
    samples -= removed;
    if (first.samples() == 0) {
      held.pop_front();
    }
  }
}

}  // namespace

LeaseBook::LeaseBook(std::uint64_t samples, std::uint32_t workers)
    : samples_(samples), workers_(workers) {
  if (samples == 0 || workers == 0) {
    throw ConfigError(fmt::format("{} samples cannot be leased to {} workers", samples, workers));
  }
}

Lease LeaseBook::next(const LeaseRequest& request) {
  if (request.worker.value >= workers_.size() || request.step_size == 0) {
    throw ProtocolError(fmt::format("worker {} of {} asked for samples in steps of {}",
                                    request.worker.value, workers_.size(), request.step_size));
  }
  Worker& worker = workers_[request.worker.value];
  take_report(worker, request);
  Epoch epoch = request.epoch;
  while (left(epoch) == 0) {
    ++epoch.value;
  }
  const std::uint64_t remaining = left(epoch);
  worker.last_steps = steps_for(worker, request.step_size, remaining);
  const std::uint64_t begin = samples_ - remaining;
  std::uint64_t size = std::min(remaining, worker.last_steps * request.step_size);
  size += remaining - size == 1 ? 1 : 0;  // of which BatchNorm takes no step
  const Lease lease{.epoch = epoch, .begin = begin, .end = begin + size};
  leased_[epoch] = lease.end;
  worker.held.push_back(lease);
  return lease;
}

void LeaseBook::take_report(Worker& worker, const LeaseRequest& request) {
  remove_first(worker.held, request.trained);
  std::erase_if(worker.held, [&](const Lease& lease) { return lease.epoch < request.epoch; });
  if (request.trained > 0 && request.taken > Duration::zero()) {
    const double speed = static_cast<double>(request.trained) / to_seconds(request.taken);
    const double before = worker.speed.value_or(speed);
    worker.speed = before + smoothing * (speed - before);
  }
}

std::uint64_t LeaseBook::steps_for(const Worker& worker, std::uint64_t step_size,
                                   std::uint64_t left) const {
  if (!worker.speed) {
    return 1;
  }
  const double part = static_cast<double>(left) * share_of(*worker.speed);
  const auto steps = static_cast<std::uint64_t>(part / leases_of_a_part) / step_size;
  return std::clamp<std::uint64_t>(steps, 1, std::max<std::uint64_t>(2 * worker.last_steps, 1));
}

/// The share of `speed` in the speeds of all workers; an unknown speed counts as the mean of the
/// others.
double LeaseBook::share_of(double speed) const {
  double sum = 0;
  std::size_t known = 0;
  for (const Worker& worker : workers_) {
    sum += worker.speed.value_or(0);
    known += worker.speed ? 1 : 0;
  }
  return speed / sum * static_cast<double>(known) / static_cast<double>(workers_.size());
}

std::uint64_t LeaseBook::left(Epoch epoch) const {
  const auto leased = leased_.find(epoch);
  return leased == leased_.end() ? samples_ : samples_ - leased->second;
}

std::vector<Lease> LeaseBook::unfinished(Rank worker) const {
  const std::deque<Lease>& held = workers_.at(worker.value).held;
  return {held.begin(), held.end()};
}

}  // namespace syncopate
