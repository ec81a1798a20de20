#include "scheme/local.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {

Outcome Local::after_backward(Replica& replica, const StepFacts& facts) {
  const TimePoint start = clock_.now();
  replica.own_step(facts.samples);
  ++round_.value;
  return {.spent = {.update = clock_.now() - start},
          .sync_round = SyncRound{.round = round_,
                                  .samples = facts.samples,
                                  .loss_sum = facts.loss_sum,
                                  .paused = facts.paused,
                                  .agreed = facts.requests}};
}

const SchemeSpec& local_scheme() {
  static const SchemeSpec spec{
      .name = "local",
      .formula = "one device, no communication: w -= rate * g",
      .source = "sequential SGD",
      .colour = "#D0D0D0",
      .traits = {.topology = Topology::none, .compresses = false, .weighs_workers = false},
      .check =
          [](const SchemeJob& job) {
            if (job.workers > 1) {
              throw ConfigError(fmt::format(
                  "scheme local trains on one device, found {} workers; did you mean ssgd?",
                  job.workers));
            }
          },
      .make = [](const SchemeContext& context) -> std::unique_ptr<Scheme> {
        return std::make_unique<Local>(context.workers.world(), context.done);
      }};
  return spec;
}

}  // namespace syncopate
