#include "scheme/ssgd.hpp"

#include "scheme/scheme_options.hpp"

namespace syncopate {
namespace {

/// Balanced workers are at the same step, but not at the same position in their parts of the data.
void adapt_ssgd(SchemeTraits& traits, const SchemeJob& job) {
  traits.balances = job.options[option::balance];
  if (traits.balances) {
    traits.sync_mode = SyncMode::local_rounds;
    traits.parts_by_speed = true;
  }
}

/// Overlap has no effect with a server, which takes the whole gradient at once.
OptionSpec overlap_of_ssgd() {
  OptionSpec overlap = spec_of(option::overlap);
  overlap.has_effect = [](const OptionValues& options) {
    return !options[option::aggregate].by_server;
  };
  overlap.needs = " without --aggregate server";
  return overlap;
}

std::unique_ptr<Scheme> make_ssgd(const SchemeContext& context) {
  const Overlap overlap = context.options[option::overlap];
  Ssgd::Options ssgd{.averaging = context.averaging, .done = context.done};
  ssgd.averaging.momentum = context.momentum;
  ssgd.averaging.buckets = {.overlap = overlap != Overlap::off,
                            .in_memory = overlap == Overlap::on || context.spare_core};
  if (context.options[option::balance]) {
    ssgd.balance = {.batch_sizes = context.batch_sizes,
                    .least = context.least_step,
                    .most = context.max_batch_sizes};
  }
  return std::make_unique<Ssgd>(context.workers, ssgd);
}

}  // namespace

Ssgd::Ssgd(Group& group, const Options& options)
    : AveragingScheme(group, options.averaging), round_(options.done) {
  if (options.balance) {
    balance_.emplace(*options.balance);
  }
}

GradientSink* Ssgd::before_backward(Replica& replica, std::uint32_t samples) {
  return replica.reports_gradients() ? averaging_.begin(samples, replica.view(ReplicaVector::grads))
                                     : nullptr;
}

Outcome Ssgd::after_backward(Replica& replica, const StepFacts& facts) {
  const Clock& clock = averaging_.group().world();
  ++round_.value;
  StepInfo info = step_info_of(facts);
  info.settings = replica.step_settings();
  info.gradients = replica.gradient_set();
  const Values gradient = averaging_.vector_of(replica, ReplicaVector::grads);
  const Averaging::Result result = averaging_.synchronize(
      round_, info, {.model = gradient, .buffers = replica.view(ReplicaVector::buffers)});
  if (gradient.are_host_floats()) {
    replica.store(ReplicaVector::grads);
  }
  replica.store(ReplicaVector::buffers);
  const TimePoint averaged = clock.now();
  if (result.round_info.sync_round.samples > 0) {  // otherwise not even a momentum moves it
    expect_same_settings(result.round_info.infos);
    replica.use_gradients(result.round_info.sync_round.gradients);
    replica.local_step();
  }
  balance(result.round_info.infos);
  return {.spent = {.update = clock.now() - averaged,
                    .communicate = result.communicated,
                    .wait = result.round_info.waited},
          .sync_round = result.round_info.sync_round};
}

void Ssgd::balance(const std::vector<StepInfo>& infos) {
  if (!balance_) {
    return;
  }
  std::vector<Balance::Step> steps;
  for (const StepInfo& info : infos) {
    steps.push_back({.samples = static_cast<std::uint32_t>(info.samples), .took = info.took});
  }
  balance_->observe(steps);
}

std::uint32_t Ssgd::step_samples() const {
  return balance_ ? balance_->sizes()[averaging_.group().rank().value] : 0;
}

std::span<const std::uint32_t> Ssgd::parts() const {
  return balance_ ? std::span(balance_->sizes()) : std::span<const std::uint32_t>();
}

const SchemeSpec& ssgd_scheme() {
  static const SchemeSpec spec{
      .name = "ssgd",
      .formula =
          "every step, g = sum(n_i g_i) / N by allreduce, then the optimizer on every replica",
      .source = "Chen et al. 2016",
      .colour = "#686868",
      .traits = {.takes_means = true},
      .options = {spec_of(option::aggregate), spec_of(option::balance), overlap_of_ssgd()},
      .adapt = adapt_ssgd,
      .way_to_larger_steps = ", or leave out --balance",
      .make = make_ssgd};
  return spec;
}

}  // namespace syncopate
