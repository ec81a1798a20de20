// The session's steps without samples: at a place at which a worker waits for all others, such as
// the end of its loop.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "collective/basic_collectives.hpp"
#include "scheme/scheme_spec.hpp"
#include "telemetry/member_status.hpp"
#include "train/worker_session.hpp"

namespace syncopate {
namespace {

/// The pause between two steps without samples, of a worker that does not wait for the others in
/// each step. It leaves them its core.
constexpr Duration pause = std::chrono::milliseconds(5);

/// FNV-1a: the same on every host.
std::uint32_t checksum_of(std::string_view name) {
  std::uint32_t sum = 2166136261;
  for (const char each : name) {
    sum = (sum ^ static_cast<unsigned char>(each)) * 16777619;
  }
  return sum;
}

}  // namespace

/// Takes part in a round of the others. The step has begun; the next one does, too.
void WorkerSession::step_without_samples() {
  replica_.discard_gradient();
  if (GradientSink* const receiver = sink(0)) {
    receiver->ready(0, replica_.view(ReplicaVector::grads).size());
  }
  end({});
  if (done_) {
    return;
  }
  const SchemeTraits traits = traits_of(config());
  if (traits.sync_mode != SyncMode::lockstep && !traits.balances) {
    world_.sleep_for(pause);
    throw_if_interrupted();
  }
  begin();
  compute(batch_size_);
}

/// No wait of these steps may last long enough to ask.
void WorkerSession::throw_if_interrupted() {
  if (world_.now() - asked_ >= interruption::every) {
    interruption::throw_if_requested();
    asked_ = world_.now();
  }
}

/// A program's loop may end before those of the others, which need this worker in their rounds.
void WorkerSession::take_steps_without_samples() {
  if (policy_->rules().stops_at_once) {
    return;
  }
  place_ = WaitingPlace::end_of_loop();
  while (!done_) {
    step_without_samples();
  }
}

void WorkerSession::align(const std::string& name) {
  const std::span<const float> gradient = replica_.view(ReplicaVector::grads);
  const std::vector<float> kept(gradient.begin(), gradient.end());
  const WaitingPlace place{.number = ++alignments_, .name = checksum_of(name)};
  if (traits_of(config()).topology == Topology::allreduce) {
    wait_in_rounds(place, name);
  } else {
    wait_outside_of_rounds(place, name);
  }
  std::ranges::copy(kept, replica_.view(ReplicaVector::grads).begin());
  replica_.store(ReplicaVector::grads);
}

/// Once all wait at the place, the last round holds all steps that any of them has taken before.
void WorkerSession::wait_in_rounds(WaitingPlace place, const std::string& name) {
  place_ = place;
  place_is_agreed_ = false;
  while (!done_ && !place_is_agreed_) {
    step_without_samples();
    if (elsewhere_) {
      refuse_place(name, *elsewhere_);
    }
  }
  place_ = {};
}

/// None goes on before all have fetched the same model.
void WorkerSession::wait_outside_of_rounds(WaitingPlace place, const std::string& name) {
  Group& workers = setup_.workers();
  std::vector<std::uint32_t> places(workers.size());
  const auto gather = [&] {
    allgather(workers, std::as_bytes(std::span(&place.name, 1)),
              std::as_writable_bytes(std::span(places)));
  };
  report_.enter(phase_synchronization);
  life_.expect_between();
  auto* const shares = offered<SharesModel>(*scheme_);
  if (shares) {
    shares->rest();
  }
  gather();
  const auto other = std::ranges::find_if(places, [&](auto each) { return each != place.name; });
  if (other != places.end()) {
    refuse_place(name, Rank{static_cast<std::uint32_t>(other - places.begin())});
  }
  if (const auto fetched = shares ? shares->fetch(replica_) : std::nullopt) {
    act_on(*fetched);
    gather();
  }
  begin();
  compute(batch_size_);
}

void WorkerSession::refuse_place(const std::string& name, Rank other) const {
  throw ConfigError(fmt::format(
      "worker {} waits for all workers at {}, but worker {} is elsewhere: workers take different "
      "numbers of steps; let what they do together follow epochs, not steps",
      options_.rank.value, name, other.value));
}

}  // namespace syncopate
