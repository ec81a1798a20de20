#include "scheme/nbssgd.hpp"

#include <algorithm>
#include <utility>

#include "collective/reduce.hpp"
#include "server/kernels.hpp"

namespace syncopate {

Nbssgd::Nbssgd(Group& group, const Options& options)
    : clock_(group.world()),
      options_(options),
      averaging_(group, options.averaging),
      signals_(group),
      book_(options.batch, options.done),
      mean_(group.transport().shared_memory()),
      meeting_(averaging_) {}

Outcome Nbssgd::after_backward(Replica& replica, const StepFacts& facts) {
  Outcome outcome{.fates = {book(replica, facts)}};
  if (meeting_.finished()) {
    outcome.meeting = return_from(meeting_.take(), replica, outcome.spent);
  }
  const bool over = outcome.meeting && outcome.meeting->agreed.stop;
  if (!book_.due() || over) {
    return outcome;
  }
  if (book_.signals()) {
    signals_.tell(book_.open());
  }
  if (options_.overlap) {
    const Round round = depart(replica);
    meeting_.begin(round, gone_, lent());
  } else {
    outcome.meeting = meet(replica, outcome.spent);
  }
  return outcome;
}

std::optional<Meeting> Nbssgd::leave(Replica& replica) {
  std::optional<Meeting> last;
  if (options_.overlap) {
    Spent unused;
    last = meet(replica, unused);
  }
  averaging_.leave();
  return last;
}

Fate Nbssgd::book(Replica& replica, const StepFacts& facts) {
  sum_.add(replica.view(Part::grads), facts.samples);
  card_.samples += facts.samples;
  card_.loss_sum += facts.loss_sum;
  card_.paused = facts.paused;
  card_.wishes.stop |= facts.wishes.stop;
  const Fate fate{.staleness = book_.finished_mini_batch()};
  book_.heard(signals_.heard());
  if (card_.wishes.stop) {
    book_.hurry();
  }
  return fate;
}

/// Makes g_i, and notes down with what the replica goes to its meeting.
Round Nbssgd::depart(Replica& replica) {
  mean_.resize(replica.view(Part::grads).size());
  sum_.divided_into(mean_.all(), static_cast<double>(sum_.samples()));
  sum_.clear();
  const std::span<const float> buffers = replica.view(Part::buffers);
  gone_buffers_.assign(buffers.begin(), buffers.end());
  mean_buffers_ = gone_buffers_;
  gone_ = std::exchange(card_, {});
  return book_.contribute().round;
}

Meeting Nbssgd::meet(Replica& replica, Spent& spent) {
  const Round round = depart(replica);
  const Averaging::Result met = averaging_.meet(round, gone_, lent());
  spent.communicate += met.communicated;
  spent.wait += met.table.waited;
  return return_from(met, replica, spent);
}

/// A round without samples moves nothing, not even by momentum.
Meeting Nbssgd::return_from(const Averaging::Result& met, Replica& replica, Spent& spent) {
  const TimePoint begun = clock_.now();
  if (met.table.meeting.samples > 0) {
    add_scaled(replica.view(Part::buffers), -1, gone_buffers_);
    add(replica.view(Part::buffers), mean_buffers_);
    replica.store(Part::buffers);
    const std::span<float> grads = replica.view(Part::grads);
    std::copy(mean_.all().begin(), mean_.all().end(), grads.begin());
    replica.store(Part::grads);
    replica.local_step();
  }
  book_.applied();
  spent.update += clock_.now() - begun;
  return met.table.meeting;
}

}  // namespace syncopate
