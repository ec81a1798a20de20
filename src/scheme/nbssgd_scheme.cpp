#include "scheme/nbssgd_scheme.hpp"

#include "base/errors.hpp"
#include "scheme/aggregate_option.hpp"
#include "scheme/nbssgd.hpp"
#include "scheme/racy_nbssgd.hpp"

namespace syncopate {
namespace {

bool is_racy(const OptionValues& options) {
  return options[option::commit] == Commit::racy;
}

/// A racy contribution goes to a server, or else to shared memory, and is in no allreduce.
bool chooses_aggregate(const OptionValues& options) {
  return !is_racy(options) || options[option::aggregate] == Aggregate::server;
}

OptionSpec aggregate_of_nbssgd() {
  OptionSpec aggregate = spec_of(option::aggregate);
  aggregate.has_effect = chooses_aggregate;
  aggregate.needs = ", where --commit racy takes --aggregate server alone";
  return aggregate;
}

BatchCut batch_cut(const OptionValues& options, std::uint32_t batch_size) {
  return {.batch_size = batch_size, .mini_batches = options[option::mini_batches]};
}

/// By how much a step that is late by one round wants a lower learning rate, with a momentum of 0.9: measured in
/// bench/results/nbssgd.md.
constexpr double of_delayed_updates = 1.6;

/// With overlap a round may end while a mini-batch is computed. Of racy contributions each is an update of its own, as
/// with the asynchronous schemes.
void adapt_nbssgd(SchemeTraits& traits, const SchemeJob& job) {
  const OptionValues& options = job.options;
  const bool is_ssgd =
      options[option::commit] == Commit::barrier && options[option::mini_batches] == 1;
  traits.parts_by_speed = !is_racy(options) && !is_ssgd;
  if (is_racy(options)) {
    const bool by_server = options[option::aggregate] == Aggregate::server;
    traits.topology = by_server ? Topology::server : Topology::shared_memory;
    traits.compresses = by_server;
    traits.sync_mode = SyncMode::asynchronous;
    count_asynchronous_updates(traits, job);
  } else if (options[option::commit] == Commit::overlap && job.workers > 1) {
    traits.rate_divisor = of_delayed_updates;
  }
}

void check_nbssgd(const SchemeJob& job) {
  const Aggregate aggregate = job.options[option::aggregate];
  if (!chooses_aggregate(job.options) && aggregate != Aggregate::automatic) {
    throw ConfigError(
        "commit racy updates shared memory, or the model of a server by aggregate server; found "
        "aggregate " +
        std::string(name_of_value(aggregate)) + "; leave it out");
  }
}

std::unique_ptr<Scheme> make_racy(const SchemeContext& context) {
  const RacyOptions racy{.batch = batch_cut(context.options, context.batch_size),
                         .signal = context.options[option::signal],
                         .mean_batch = context.weight.unit};
  if (context.server != nullptr) {
    return std::make_unique<RacyServerNbssgd>(context.workers, *context.server, racy,
                                              context.server_start);
  }
  SharedModel& shared = shared_model_of(context, "--commit racy without --aggregate server");
  return std::make_unique<RacyNbssgd>(context.workers, shared, racy, shared.counts());
}

/// While an allreduce travels, a worker of a host whose cores are all taken keeps the others from it by computing on:
/// measured with four workers on two cores, 87 % of the mini-batches were one update late. There each waits for the
/// allreduce, and the others have its core.
bool waits_for_allreduce(const SchemeContext& context) {
  const bool overlaps = context.options[option::commit] == Commit::overlap;
  return !overlaps || (context.workers.size() > 1 && context.all_cores_taken());
}

std::unique_ptr<Scheme> make_nbssgd(const SchemeContext& context) {
  if (is_racy(context.options)) {
    return make_racy(context);
  }
  const std::span<const float> buffers = context.replica->view(Part::buffers);
  Averaging::Options averaging = context.averaging;
  averaging.momentum = context.momentum;
  const bool barrier = waits_for_allreduce(context);
  averaging.ahead = !barrier;
  return std::make_unique<Nbssgd>(
      context.workers,
      Nbssgd::Options{.averaging = averaging,
                      .rounds = {.batch = batch_cut(context.options, context.batch_size),
                                 .done = context.done,
                                 .signal = context.options[option::signal],
                                 .barrier = barrier,
                                 .params = context.replica->view(Part::params).size(),
                                 .buffers = {buffers.begin(), buffers.end()}},
                      .samples_done = context.samples_done,
                      .learning_rate = context.learning_rate});
}

}  // namespace

/// `Nbssgd`, `RacyNbssgd` in shared memory, or `RacyServerNbssgd`, as the option `commit` says.
const SchemeSpec& nbssgd_scheme() {
  static const SchemeSpec spec{
      .name = "nbssgd",
      .formula = "the first to finish a batch signals; all give the mini-batches done, ssgd's step",
      .source = "He & Dube 2022",
      .traits = {.sync_mode = SyncMode::local_rounds},
      .options = {aggregate_of_nbssgd(), spec_of(option::mini_batches), spec_of(option::signal),
                  spec_of(option::commit)},
      .adapt = adapt_nbssgd,
      .check = check_nbssgd,
      .least_step = [](const OptionValues& options,
                       std::uint32_t batch_size) { return batch_cut(options, batch_size).size(); },
      .way_to_larger_steps = ", or fewer --mini-batches",
      .make = make_nbssgd};
  return spec;
}

}  // namespace syncopate
