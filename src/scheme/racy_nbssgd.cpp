#include "scheme/racy_nbssgd.hpp"

#include <utility>

namespace syncopate {

RacyNbssgd::RacyNbssgd(Group& group, SharedModel& model, const Options& options)
    : group_(group),
      model_(model),
      options_(options),
      signals_(group),
      book_(options.batch, Round{}),
      meetings_(model, options.start),
      read_at_(options.start.updates) {}

Outcome RacyNbssgd::after_backward(Replica& replica, const StepFacts& facts) {
  sum_.add(replica.view(Part::grads), facts.samples);
  loss_sum_ += facts.loss_sum;
  book_.finished_mini_batch();
  book_.heard(signals_.heard());
  if (facts.wishes.stop) {
    book_.hurry();
  }
  if (!book_.due()) {
    return {};
  }
  if (book_.signals()) {
    signals_.tell(book_.open());
  }
  return commit(replica, facts);
}

Outcome RacyNbssgd::commit(Replica& replica, const StepFacts& facts) {
  const Clock& clock = group_.world();
  const TimePoint begun = clock.now();
  step(replica);
  const TimePoint stepped = clock.now();
  model_.add_difference(replica.view(Part::params), before_);
  model_.leave_buffers(group_.rank(), replica.view(Part::buffers));
  const std::uint64_t updates = model_.count(sum_.samples(), std::exchange(loss_sum_, 0));
  const std::vector<Fate> fates(book_.contribute().mini_batches, {.staleness = updates - read_at_});
  sum_.clear();
  read(replica);
  book_.applied();
  return {.spent = {.update = stepped - begun, .communicate = clock.now() - stepped},
          .meeting = meeting(facts),
          .fates = fates};
}

void RacyNbssgd::step(Replica& replica) {
  const std::span<const float> params = replica.view(Part::params);
  before_.assign(params.begin(), params.end());
  const auto samples = static_cast<double>(sum_.samples());
  sum_.divided_into(replica.view(Part::grads),
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

}  // namespace syncopate
