#pragma once

#include <array>
#include <optional>

#include "config/option_groups.hpp"
#include "pacer/pacer_client.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {

constexpr auto names_of(PaceRule) {
  return std::to_array<Named<PaceRule>>({{"timed", PaceRule::timed}, {"paper", PaceRule::paper}});
}

namespace option {

inline constexpr Option<PaceRule> pacing{
    .name = "pacing",
    .group = option_group::synchronization,
    .value = "NAME",
    .help = "rounds of esync: as long as the sums want, or as the slowest takes for a mini-batch",
    .initial = PaceRule::timed};

inline constexpr Option<std::optional<double>> round_time{
    .name = "round-time",
    .group = option_group::synchronization,
    .value = "SECONDS",
    .help = "of a round of esync with pacing timed",
    .limits = positive,
    .when_unset = "auto: the shortest whose sums take 5 % of it",
    .has_effect = [](const OptionValues& values) { return values[pacing] == PaceRule::timed; },
    .needs = " and --pacing timed"};

inline constexpr Option<std::optional<double>> pacing_margin{
    .name = "pacing-margin",
    .group = option_group::synchronization,
    .value = "SECONDS",
    .help = "epsilon of pacing paper: time to spare for another step; 0.5 in the paper",
    .when_unset = "auto: by the measured spread of step times",
    .has_effect = [](const OptionValues& values) { return values[pacing] == PaceRule::paper; },
    .needs = " and --pacing paper"};

}  // namespace option

}  // namespace syncopate
