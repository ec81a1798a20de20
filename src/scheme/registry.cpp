#include "scheme/registry.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"
#include "scheme/downpour.hpp"
#include "scheme/easgd.hpp"
#include "scheme/hogwild.hpp"
#include "scheme/local.hpp"
#include "scheme/local_rounds.hpp"
#include "scheme/nbssgd.hpp"
#include "scheme/paced_turns.hpp"
#include "scheme/push_pull.hpp"
#include "scheme/racy_nbssgd.hpp"
#include "scheme/scheme_table.hpp"
#include "scheme/ssgd.hpp"

namespace syncopate {
namespace {

using Made = std::unique_ptr<Scheme>;

Made make_local(const Surroundings& where, const SchemeOptions& options) {
  if (where.workers.size() > 1) {
    throw ConfigError(fmt::format(
        "the scheme local trains on one device, but this job has {} workers; use --workers 1 or "
        "another scheme",
        where.workers.size()));
  }
  return std::make_unique<Local>(where.workers.world(), options.done);
}

SharedModel& shared_model(const Surroundings& where, const std::string& name) {
  if (!where.shared) {
    throw ConfigError(fmt::format(
        "{} needs memory that all workers share: start them together, with `syncopate train`",
        name));
  }
  return *where.shared;
}

Made make_racy(const Surroundings& where, const SchemeOptions& options) {
  const RacyOptions racy{
      .batch = options.batch, .signal = options.signal, .mean_batch = options.weight.unit};
  if (where.server) {
    return std::make_unique<RacyServerNbssgd>(where.workers, *where.server, racy, where.start);
  }
  SharedModel& shared = shared_model(where, "--commit racy without --through server");
  return std::make_unique<RacyNbssgd>(where.workers, shared, racy, shared.counts());
}

Made make_nbssgd(const Surroundings& where, const SchemeOptions& options,
                 const Averaging::Options& averaging) {
  if (options.commit == Commit::racy) {
    return make_racy(where, options);
  }
  if (!where.replica) {
    throw InternalError("the scheme nbssgd was made without a replica");
  }
  const std::span<const float> buffers = where.replica->view(Part::buffers);
  Averaging::Options of_rounds = averaging;
  of_rounds.ahead = options.commit == Commit::overlap;
  return std::make_unique<Nbssgd>(
      where.workers, Nbssgd::Options{.averaging = of_rounds,
                                     .rounds = {.batch = options.batch,
                                                .done = options.done,
                                                .signal = options.signal,
                                                .barrier = options.commit == Commit::barrier,
                                                .params = where.replica->view(Part::params).size(),
                                                .buffers = {buffers.begin(), buffers.end()}},
                                     .samples_done = options.samples_done,
                                     .learning_rate = options.learning_rate});
}

std::unique_ptr<Turns> make_turns(const Surroundings& where, const SchemeOptions& options) {
  if (options.name != "esync") {
    return std::make_unique<EverySteps>(options.local_steps);
  }
  if (!where.pacer) {
    throw InternalError("the scheme esync was made without a pacer");
  }
  return std::make_unique<PacedTurns>(*where.pacer,
                                      PacedTurns::Options{.first = options.first_pace,
                                                          .batch_size = options.batch_size,
                                                          .done = options.done.value});
}

Made make_with_each_other(const Surroundings& where, const SchemeOptions& options) {
  const Averaging::Options averaging{.weights = options.weights,
                                     .data_share = options.data_share,
                                     .algorithm = options.algorithm,
                                     .compression = options.compression,
                                     .compress_remote = options.compress_remote,
                                     .server = where.server,
                                     .samples_to_do = options.samples_to_do,
                                     .ahead = options.overlap};
  Averaging::Options of_gradients = averaging;
  of_gradients.momentum = options.momentum;
  if (options.name == "nbssgd") {
    return make_nbssgd(where, options, of_gradients);
  }
  if (options.name == "ssgd") {
    Ssgd::Options ssgd{.averaging = of_gradients, .done = options.done};
    ssgd.averaging.buckets = options.buckets;
    if (!options.balanced.empty()) {
      ssgd.balance = {.batch_sizes = options.balanced, .least = options.least_step};
    }
    return std::make_unique<Ssgd>(where.workers, ssgd);
  }
  LocalRounds::Options rounds{.averaging = averaging,
                              .done = options.done,
                              .outer = options.outer,
                              .outer_rate = options.outer_rate,
                              .outer_state = options.outer_state,
                              .overlap = options.overlap,
                              .local = options.local};
  if (options.control_variates) {
    rounds.control = options.batch_size;
  }
  return std::make_unique<LocalRounds>(where.workers, make_turns(where, options), rounds);
}

Made make_hogwild(const Surroundings& where, const SchemeOptions& options) {
  SharedModel& shared = shared_model(where, "the scheme hogwild");
  return std::make_unique<Hogwild>(
      where.workers.world(), shared,
      Hogwild::Options{
          .self = where.workers.rank(), .weight = options.weight, .start = shared.counts()});
}

Made make_with_server(const Surroundings& where, const SchemeOptions& options) {
  if (!where.server) {
    throw InternalError(fmt::format("the scheme {} was made without a server", options.name));
  }
  if (options.name == "downpour") {
    return std::make_unique<Downpour>(where.workers.world(), *where.server,
                                      Downpour::Options{.push_every = options.push_every,
                                                        .fetch_every = options.fetch_every,
                                                        .weight = options.weight,
                                                        .start = where.start});
  }
  if (options.name == "easgd") {
    return std::make_unique<Easgd>(
        where.workers.world(), *where.server,
        Easgd::Options{.local_steps = options.local_steps, .start = where.start});
  }
  return std::make_unique<PushPull>(
      *where.server, PushPull::Options{.weight = options.weight, .start = where.start});
}

}  // namespace

Made make_scheme(const Surroundings& where, const SchemeOptions& options) {
  switch (scheme_info(options.name).through) {
    case SchemeInfo::Through::nothing: return make_local(where, options);
    case SchemeInfo::Through::each_other: return make_with_each_other(where, options);
    case SchemeInfo::Through::server: return make_with_server(where, options);
    case SchemeInfo::Through::shared_memory: return make_hogwild(where, options);
  }
  throw InternalError("a scheme that meets in nothing known");
}

}  // namespace syncopate
