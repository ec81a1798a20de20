#include "scheme/racy_nbssgd.hpp"

#include <utility>

namespace syncopate {

bool RacyContribution::add(std::span<const float> gradient, const StepFacts& facts) {
  sum_.add(gradient, facts.samples);
  loss_sum_ += facts.loss_sum;
  book_.finished_mini_batch(Round{});
  book_.heard(signals_.heard());
  if (facts.wishes.stop) {
    book_.hurry();
  }
  if (!book_.due()) {
    return false;
  }
  if (book_.signals()) {
    signals_.tell(book_.open());
  }
  return true;
}

std::uint64_t RacyContribution::discard() {
  return committed({}).size();
}

std::vector<Fate> RacyContribution::committed(const Fate& fate) {
  const std::vector<Fate> fates(book_.contribute().staleness.size(), fate);
  book_.reduced();  // no round is waited for
  sum_.clear();
  loss_sum_ = 0;
  return fates;
}

RacyNbssgd::RacyNbssgd(Group& group, SharedModel& model, const RacyOptions& options,
                       const SharedModel::Counts& start)
    : group_(group),
      model_(model),
      options_(options),
      contribution_(group, options.batch, options.signal),
      meetings_(model, start),
      read_at_(start.updates) {}

Outcome RacyNbssgd::after_backward(Replica& replica, const StepFacts& facts) {
  position_ = {.step = facts.step, .data = facts.position};
  return contribution_.add(replica.view(Part::grads), facts) ? commit(replica, facts) : Outcome{};
}

Outcome RacyNbssgd::commit(Replica& replica, const StepFacts& facts) {
  const Clock& clock = group_.world();
  const TimePoint begun = clock.now();
  step(replica);
  const TimePoint stepped = clock.now();
  const std::vector<Fate> fates = add_to_model(replica);
  read(replica);
  return {.spent = {.update = stepped - begun, .communicate = clock.now() - stepped},
          .meeting = meeting(facts),
          .fates = fates};
}

std::vector<Fate> RacyNbssgd::add_to_model(Replica& replica) {
  model_.add_difference(replica.view(Part::params), before_);
  model_.leave_buffers(group_.rank(), replica.view(Part::buffers));
  model_.leave_position(group_.rank(), position_);
  const std::uint64_t updates = model_.count(contribution_.samples(), contribution_.loss_sum());
  return contribution_.committed({.staleness = updates - read_at_});
}

void RacyNbssgd::hand_in(Replica& replica) {
  if (contribution_.samples() > 0) {
    step(replica);
    add_to_model(replica);
  }
}

void RacyNbssgd::step(Replica& replica) {
  const std::span<const float> params = replica.view(Part::params);
  before_.assign(params.begin(), params.end());
  const auto samples = static_cast<double>(contribution_.samples());
  contribution_.divided_into(replica.view(Part::grads),
                             options_.mean_batch > 0 ? options_.mean_batch : samples);
  replica.store(Part::grads);
  replica.local_step();
}

std::optional<Meeting> RacyNbssgd::leave(Replica& replica) {
  read(replica);
  model_.read_mean_buffers(replica.view(Part::buffers));
  replica.store(Part::buffers);
  return meetings_.next({});
}

ModelParts RacyNbssgd::model(Replica& replica) const {
  buffers_.resize(replica.view(Part::buffers).size());
  model_.read_mean_buffers(buffers_);
  return {.params = replica.view(Part::params), .buffers = buffers_};
}

void RacyNbssgd::read(Replica& replica) {
  read_at_ = model_.counts().updates;
  model_.read(replica.view(Part::params));
  replica.store(Part::params);
}

Meeting RacyNbssgd::meeting(const StepFacts& facts) {
  Meeting meeting = meetings_.next(facts);
  samples_done_ += meeting.samples;
  meeting.agreed.stop |= samples_done_ >= options_.samples_to_do;
  return meeting;
}

RacyServerNbssgd::RacyServerNbssgd(Group& group, ServerClient& server, const RacyOptions& options,
                                   const Reply& start)
    : server_(server),
      options_(options),
      contribution_(group, options.batch, options.signal),
      meetings_(start),
      step_(start.steps) {}

Outcome RacyServerNbssgd::after_backward(Replica& replica, const StepFacts& facts) {
  ++step_;
  const bool due = contribution_.add(replica.view(Part::grads), facts);
  return due ? push(replica, facts.wishes) : Outcome{};
}

Outcome RacyServerNbssgd::push(Replica& replica, const Wishes& wishes) {
  const auto samples = static_cast<double>(contribution_.samples());
  const std::span<float> gradient = replica.view(Part::grads);
  contribution_.divided_into(gradient, samples);
  const double weight = options_.mean_batch > 0 ? samples / options_.mean_batch : 1;
  const ServerClient::Result result =
      server_.work({.push = gradient,
                    .buffers = replica.view(Part::buffers),
                    .pull = replica.view(Part::params),
                    .facts = {.step = step_,
                              .samples = contribution_.samples(),
                              .loss_sum = contribution_.loss_sum(),
                              .weight = static_cast<float>(weight)}});
  replica.store(Part::params);
  Meeting meeting = meetings_.next(result.reply, wishes);
  samples_done_ += meeting.samples;
  meeting.agreed.stop |= samples_done_ >= options_.samples_to_do;
  return {.spent = {.communicate = result.communicated, .wait = result.waited},
          .meeting = meeting,
          .fates = contribution_.committed(
              {.staleness = result.reply.staleness, .dropped = result.reply.dropped})};
}

std::optional<Meeting> RacyServerNbssgd::leave(Replica& replica) {
  std::optional<Meeting> last;
  if (contribution_.samples() > 0) {
    last = push(replica, {}).meeting;
  }
  server_.leave();
  return last;
}

}  // namespace syncopate
