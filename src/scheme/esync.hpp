#pragma once

#include <array>
#include <optional>

#include "config/option.hpp"
#include "pacer/pacer_client.hpp"
#include "scheme/local_rounds.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {

constexpr auto names_of(PaceRule) {
  return std::to_array<Named<PaceRule>>({{"timed", PaceRule::timed}, {"paper", PaceRule::paper}});
}

/// The sync schedule of ESync (Li et al. 2019, algorithm 1, without its round trip): reports every
/// step to the pacer, and is due when the pacer says *ready*. It never interrupts a mini-batch: an
/// order that arrives during a step takes effect at its end.
///
/// In timed rounds steps may be parts of a mini-batch. The first one of a round has the whole
/// learning rate, so that a round in which every worker takes one step is a step of SGD with the
/// mean gradient of all their samples. For every further step the rate is multiplied by the step's
/// samples over those of a mini-batch: while the pacer's answer is on its way, a fast device may
/// take hundreds of small steps, whose noisy gradients would ruin a model at the whole rate. Where
/// the device has a part of a global batch, the second step of a round has the whole rate, too, if
/// it takes that many samples.
class PacedSchedule : public SyncSchedule {
 public:
  struct Options {
    FirstPace first;
    std::uint32_t batch_size = 0;  ///< a step of this size takes a whole mini-batch
    std::uint64_t done = 0;        ///< rounds before this run, where it is resumed
    PaceRule rule = PaceRule::timed;
    std::uint64_t samples_to_do = 0;  ///< of all workers, from the start of this run; 0: no limit
  };

  /// `pacer` outlives this.
  PacedSchedule(PacerClient& pacer, const Options& options)
      : pacer_(pacer),
        first_(options.first),
        batch_size_(options.batch_size),
        rule_(options.rule),
        samples_to_do_(options.samples_to_do),
        round_(options.done + 1),
        base_(options.done) {}

  bool due_after(const LocalStep& step) override;
  std::uint32_t step_samples() const override;
  double rate_factor(std::uint32_t samples) const override;
  bool ends_with_the_job() const override { return rule_ == PaceRule::timed; }
  std::uint32_t period() const override { return period_; }
  void call(std::uint64_t round) override;
  void restart(std::uint64_t last, std::uint32_t period) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  bool is_due() const;
  std::uint32_t ordered_samples() const;

  PacerClient& pacer_;
  FirstPace first_;  ///< valid until the pacer sends an order
  std::uint32_t batch_size_;
  PaceRule rule_;
  std::uint64_t samples_to_do_;
  std::uint64_t round_;        ///< of the next synchronization
  std::uint64_t base_;         ///< a round that begins rounds of any period
  std::uint32_t period_ = 1;   ///< from the last synchronization to the next
  std::uint64_t steps_ = 0;    ///< since the last synchronization
  bool called_early_ = false;  ///< all others synchronize in `round_`, before this worker expected
};

namespace option {

inline constexpr Option<PaceRule> pacing{
    .name = "pacing",
    .group = option_group::synchronization,
    .value = "NAME",
    .help = "rounds of esync; timed: as the allreduce requires; paper: a mini-batch of the slowest",
    .initial = PaceRule::timed};

inline constexpr Option<std::optional<double>> round_time{
    .name = "round-time",
    .group = option_group::synchronization,
    .value = "SECONDS",
    .help = "duration of a round of esync with --pacing timed",
    .limits = seconds_above_zero,
    .when_unset = "auto: the shortest whose allreduce takes 5 % of it",
    .has_effect = [](const OptionValues& values) { return values[pacing] == PaceRule::timed; },
    .needs = " and --pacing timed"};

inline constexpr Option<std::optional<std::uint32_t>> min_batch_size{
    .name = "min-batch-size",
    .group = option_group::optimization,
    .value = "SAMPLES",
    .help =
        "esync: least part of a global batch for a worker; auto: the size below which its "
        "device loses a tenth of its speed, measured at the start",
    .limits = batch_sizes,
    .when_unset = "auto with the default global batch, else 1"};

inline constexpr Option<std::optional<std::uint32_t>> max_period{
    .name = "max-period",
    .group = option_group::synchronization,
    .value = "N",
    .help =
        "esync: a slow worker synchronizes in every p-th round, p a power of two and at most N; 1: "
        "every worker in every round",
    .limits = {.least = 1, .most = 1024},
    .when_unset =
        "64; 1 with --pacing paper, --overlap off, --compress, --fragments, --aggregate server or "
        "mpi, or a split other than iid"};

inline constexpr Option<std::optional<double>> pacing_margin{
    .name = "pacing-margin",
    .group = option_group::synchronization,
    .value = "SECONDS",
    .help = "epsilon of --pacing paper: time to spare for another step; 0.5 in the paper",
    .limits = seconds_from_zero,
    .when_unset = "auto: by the measured spread of step times",
    .has_effect = [](const OptionValues& values) { return values[pacing] == PaceRule::paper; },
    .needs = " and --pacing paper"};

}  // namespace option

}  // namespace syncopate
