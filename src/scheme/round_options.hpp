#pragma once

#include <array>
#include <memory>
#include <optional>

#include "config/option_groups.hpp"
#include "config/option_values.hpp"
#include "scheme/scheme_spec.hpp"
#include "scheme/sync_schedule.hpp"

namespace syncopate {

/// Whether workers compute while an allreduce is under way; `automatic`: where it pays.
enum class Overlap { automatic, on, off };
constexpr auto names_of(Overlap) {
  return std::to_array<Named<Overlap>>(
      {{"auto", Overlap::automatic}, {"on", Overlap::on}, {"off", Overlap::off}});
}

/// The optimizer over rounds of local steps; `automatic`: that of the scheme.
enum class OuterOptimizer { automatic, sgd, momentum, nesterov };
constexpr auto names_of(OuterOptimizer) {
  return std::to_array<Named<OuterOptimizer>>({{"auto", OuterOptimizer::automatic},
                                               {"sgd", OuterOptimizer::sgd},
                                               {"momentum", OuterOptimizer::momentum},
                                               {"nesterov", OuterOptimizer::nesterov}});
}

/// Whether the learning rate is that of a local step, or of a round of them.
enum class LocalRate { automatic, step, round };
constexpr auto names_of(LocalRate) {
  return std::to_array<Named<LocalRate>>(
      {{"auto", LocalRate::automatic}, {"step", LocalRate::step}, {"round", LocalRate::round}});
}

/// What keeps local steps on different data from drifting apart.
enum class DriftCorrection { automatic, none, scaffold };
constexpr auto names_of(DriftCorrection) {
  return std::to_array<Named<DriftCorrection>>({{"auto", DriftCorrection::automatic},
                                                {"none", DriftCorrection::none},
                                                {"scaffold", DriftCorrection::scaffold}});
}

/// Options of schemes whose replicas take local steps between two synchronizations.
namespace option {

inline constexpr Option<std::uint32_t> local_steps{
    .name = "local-steps",
    .group = option_group::synchronization,
    .value = "N",
    .help = "between two meetings of local-sgd, diloco and easgd",
    .initial = 10,
    .limits = at_least_one};

inline constexpr Option<OuterOptimizer> outer_optimizer{
    .name = "outer-optimizer",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "the rule of a round of local steps; auto: nesterov with diloco; of esync with a split "
        "other than iid, that of a local optimizer with momentum; else sgd"};

inline constexpr Option<double> outer_momentum{
    .name = "outer-momentum",
    .group = option_group::synchronization,
    .value = "X",
    .help = "of the outer optimizers momentum and nesterov",
    .initial = 0.9,
    .limits = below_one,
    .has_effect =
        [](const OptionValues& values) { return values[outer_optimizer] != OuterOptimizer::sgd; },
    .needs = ", and an outer optimizer other than sgd"};

inline constexpr Option<DriftCorrection> drift_correction{
    .name = "drift-correction",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "of local steps on data that differ by worker; scaffold: control variates, for twice "
        "the traffic; auto: scaffold with a split other than iid, else none"};

inline constexpr Option<LocalRate> local_rate{
    .name = "local-rate",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "of local steps: the learning rate each, or shared by the steps of a round; auto: round "
        "with a split other than iid, else step"};

inline constexpr Option<std::optional<double>> global_lr{
    .name = "global-lr",
    .group = option_group::synchronization,
    .value = "X",
    .help = "learning rate of the outer optimizer",
    .limits = positive,
    .when_unset = "1 with sgd; else 0.7, or 0.3 where the workers' optimizer has a momentum, too"};

inline constexpr Option<Overlap> overlap{
    .name = "overlap",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "whether sums travel while workers compute: of ssgd the same step, of esync the next "
        "round"};

}  // namespace option

/// Options of rounds of local steps that were left open; `usual`: the scheme's outer optimizer.
void resolve_rounds(SchemeDefaults& defaults, OuterOptimizer usual);

/// Refuses an outer optimizer that contradicts its momentum. Errors: ConfigError.
void check_rounds(const SchemeJob& job);

/// `LocalRounds` as the options say.
std::unique_ptr<Scheme> make_local_rounds(const SchemeContext& context,
                                          std::unique_ptr<SyncSchedule> schedule, bool overlap);

/// Likewise, closed after the option `local_steps`.
std::unique_ptr<Scheme> make_fixed_rounds(const SchemeContext& context);

}  // namespace syncopate
