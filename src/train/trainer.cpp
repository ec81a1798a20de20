// The built-in trainer: a worker's loop over its part of the dataset.
#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"
#include "train/loader.hpp"
#include "train/worker_session.hpp"

namespace syncopate {
namespace {

/// Fetches a batch, computes, and hands the gradient to the session, until that is done.
class Trainer {
 public:
  Trainer(World& world, MemberLink& link, Replica& replica, const WorkerOptions& options)
      : link_(link),
        replica_(replica),
        options_(options),
        session_(world, link, replica, options),
        loader_(world, loading(options.plan.feed(options.dataset.train, options.rank))),
        batches_(loader_,
                 session_.skips_empty_batches() ? MicroBatcher::Empty::skipped
                                                : MicroBatcher::Empty::kept,
                 session_.first_position()) {}

  void run() {
    expect_samples();
    session_.start();
    while (!session_.is_done()) {
      one_step();
    }
    replica_.on_progress(PassDetail::gradients, {});
    session_.finish();
  }

 private:
  Loader::Options loading(BatchFeed feed) {
    const FeedPosition start = feed.position_after(Step{session_.first_position().batch});
    const TrainConfig& config = options_.plan.config();
    return {.dataset = options_.dataset,
            .feed = std::move(feed),
            .start = start,
            .augmentation = config.augment,
            .seed = config.seed,
            .prepared = [this](TimePoint begun, TimePoint ended) {
              session_.trace().loaded(begun, ended);
            }};
  }

  /// The part of a worker never changes its size, so one mini-batch shows if the part is empty.
  /// Errors: ConfigError for a worker that would skip empty mini-batches forever.
  void expect_samples() const {
    BatchFeed feed = options_.plan.feed(options_.dataset.train, options_.rank);
    if (session_.skips_empty_batches() && feed.batch({}).empty()) {
      throw ConfigError(fmt::format(
          "worker {} has no training sample: its part of the {} samples is empty; use fewer "
          "workers",
          options_.rank.value, options_.dataset.train.samples()));
    }
  }

  void one_step() {
    const Batch& batch = batches_.next(session_.begin());
    const auto samples = static_cast<std::uint32_t>(batch.samples());
    session_.compute(samples, longest_pass(samples));
    const PassResult result = replica_.backward(batch, session_.sink(samples));
    session_.report().classified(result);
    if (const auto took = session_.end(result, batches_.position())) {
      forecast_.took(result.samples, *took);
    }
  }

  /// The longest likely time of a pass over `samples`, by the device's profile and earlier passes.
  /// If neither is known, the replica reports the progress of each operator instead.
  Duration longest_pass(std::uint32_t samples) {
    const Duration longest =
        std::max(session_.usual_step_time(samples), forecast_.longest(samples));
    const bool unknown = longest == Duration::zero();
    if (std::exchange(reports_operators_, unknown) != unknown) {
      replica_.on_progress(unknown ? PassDetail::operators : PassDetail::gradients,
                           [&link = link_] { link.progressed(); });
    }
    return longest;
  }

  MemberLink& link_;
  Replica& replica_;
  const WorkerOptions& options_;
  WorkerSession session_;  ///< before the loader, which reports to it
  Loader loader_;
  MicroBatcher batches_;
  StepForecast forecast_;
  std::optional<bool> reports_operators_;
};

}  // namespace

void run_worker(World& world, MemberLink& link, Replica& replica, const WorkerOptions& options) {
  try {
    Trainer(world, link, replica, options).run();
  } catch (const std::exception& error) {
    link.fail(error);
  }
}

}  // namespace syncopate
