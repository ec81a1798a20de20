#include "scheme/easgd.hpp"

#include <utility>

namespace syncopate {

Outcome Easgd::after_backward(Replica& replica, const StepFacts& facts) {
  const TimePoint begun = clock_.now();
  replica.local_step();
  Outcome outcome{.spent = {.update = clock_.now() - begun}};
  ++since_.step;
  ++steps_since_;
  since_.samples += facts.samples;
  since_.loss_sum += facts.loss_sum;
  if (since_.step % options_.local_steps != 0) {
    return outcome;
  }
  const ServerClient::Result result = exchange(replica);
  outcome.spent.communicate = result.communicated;
  outcome.spent.wait = result.waited;
  outcome.meeting = meetings_.next(result.reply, facts.wishes);
  outcome.fates = {{.staleness = result.reply.staleness, .dropped = result.reply.dropped}};
  return outcome;
}

std::uint64_t Easgd::discard_pending() {
  since_ = {.step = since_.step};
  return std::exchange(steps_since_, 0);
}

std::optional<Meeting> Easgd::leave(Replica& replica) {
  std::optional<Meeting> last;
  if (since_.samples > 0) {
    last = meetings_.next(exchange(replica).reply, {});
  }
  server_.leave();
  return last;
}

ServerClient::Result Easgd::exchange(Replica& replica) {
  // The answer comes when the server has the whole replica, so it may take its place.
  const std::span<float> params = replica.view(Part::params);
  const ServerClient::Result result = server_.work(
      {.push = params, .buffers = replica.view(Part::buffers), .pull = params, .facts = since_});
  replica.store(Part::params);
  since_ = {.step = since_.step};
  steps_since_ = 0;
  return result;
}

}  // namespace syncopate
