#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collective/reducer.hpp"
#include "config/option_values.hpp"

namespace syncopate {

/// How values are reduced over all workers: by a reducer, or by a parameter server.
struct Aggregate {
  const ReducerSpec* reducer = nullptr;  ///< null: the cheapest, unless a server reduces
  bool by_server = false;

  bool is_automatic() const { return reducer == nullptr && !by_server; }

  friend bool operator==(const Aggregate&, const Aggregate&) = default;
};

/// "auto", the name of a reducer, or "server".
template <>
struct OptionTraits<Aggregate> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const Aggregate& value);
  static Aggregate read(const OptionValue& value);
  static std::vector<std::string_view> choices();
};

/// The value on the command line.
std::string name_of_value(const Aggregate& aggregate);

/// Whether workers compute while an allreduce is under way; `automatic`: where it saves time.
enum class Overlap { automatic, on, off };
constexpr auto names_of(Overlap) {
  return std::to_array<Named<Overlap>>(
      {{"auto", Overlap::automatic}, {"on", Overlap::on}, {"off", Overlap::off}});
}

/// The outer optimizer of rounds of local steps; `automatic`: the scheme's default.
enum class OuterOptimizer { automatic, sgd, momentum, nesterov, gpa };
constexpr auto names_of(OuterOptimizer) {
  return std::to_array<Named<OuterOptimizer>>({{"auto", OuterOptimizer::automatic},
                                               {"sgd", OuterOptimizer::sgd},
                                               {"momentum", OuterOptimizer::momentum},
                                               {"nesterov", OuterOptimizer::nesterov},
                                               {"gpa", OuterOptimizer::gpa}});
}

/// Whether the learning rate applies to each local step, or is shared by the steps of a round.
enum class LocalRate { automatic, step, round };
constexpr auto names_of(LocalRate) {
  return std::to_array<Named<LocalRate>>(
      {{"auto", LocalRate::automatic}, {"step", LocalRate::step}, {"round", LocalRate::round}});
}

/// How replicas are kept from drifting apart where their local steps use different data.
enum class DriftCorrection { automatic, none, scaffold };
constexpr auto names_of(DriftCorrection) {
  return std::to_array<Named<DriftCorrection>>({{"auto", DriftCorrection::automatic},
                                                {"none", DriftCorrection::none},
                                                {"scaffold", DriftCorrection::scaffold}});
}

/// Options that several schemes declare.
namespace option {

inline constexpr Option<Aggregate> aggregate{
    .name = "aggregate",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "how values are reduced over all workers; auto: the cheapest allreduce; torch: a process "
        "group of the script; server: a parameter server, which keeps the model with --scheme "
        "nbssgd --commit racy"};

inline constexpr Option<std::uint32_t> local_steps{
    .name = "local-steps",
    .group = option_group::synchronization,
    .value = "N",
    .help = "steps between two synchronizations of local-sgd, diloco and easgd",
    .initial = 10,
    .limits = step_counts};

inline constexpr Option<OuterOptimizer> outer_optimizer{
    .name = "outer-optimizer",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "optimizer of a round of local steps; gpa averages the models of rounds; auto: nesterov "
        "with diloco; with esync and a split other than iid, the workers' optimizer if it has a "
        "momentum; else sgd"};

inline constexpr Option<double> outer_momentum{
    .name = "outer-momentum",
    .group = option_group::synchronization,
    .value = "X",
    .help = "momentum of the outer optimizers momentum and nesterov",
    .initial = 0.9,
    .limits = below_one,
    .has_effect =
        [](const OptionValues& values) {
          const OuterOptimizer outer = values[outer_optimizer];
          return outer != OuterOptimizer::sgd && outer != OuterOptimizer::gpa;
        },
    .needs = ", and the outer optimizer momentum or nesterov"};

inline constexpr Option<std::optional<double>> outer_average{
    .name = "outer-average",
    .group = option_group::synchronization,
    .value = "X",
    .help =
        "part of the averaged model that stays in a round, with the outer optimizer gpa; auto: "
        "the average is one over about the last ninth of the rounds",
    .limits = below_one,
    .when_unset = "auto",
    .has_effect =
        [](const OptionValues& values) { return values[outer_optimizer] == OuterOptimizer::gpa; },
    .needs = ", and the outer optimizer gpa"};

inline constexpr Option<double> outer_point{
    .name = "outer-point",
    .group = option_group::synchronization,
    .value = "X",
    .help =
        "where workers compute with the outer optimizer gpa, from the newest model (0) to the "
        "averaged one (1)",
    .initial = 0.5,
    .limits = {.most = 1},
    .has_effect =
        [](const OptionValues& values) { return values[outer_optimizer] == OuterOptimizer::gpa; },
    .needs = ", and the outer optimizer gpa"};

inline constexpr Option<DriftCorrection> drift_correction{
    .name = "drift-correction",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "keeps local steps on unequal data together; scaffold: control variates, for twice "
        "the traffic; auto: scaffold with a split other than iid, else none"};

inline constexpr Option<LocalRate> local_rate{
    .name = "local-rate",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "step: each local step takes the whole learning rate; round: the steps of a round share "
        "it; auto: round with a split other than iid, else step"};

inline constexpr Option<std::optional<double>> global_lr{
    .name = "global-lr",
    .group = option_group::synchronization,
    .value = "X",
    .help = "learning rate of the outer optimizer",
    .limits = rates,
    .when_unset =
        "1 with sgd and gpa; else 0.7, or 0.3 where the workers' optimizer has a momentum, too"};

inline constexpr Option<Overlap> overlap{
    .name = "overlap",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "whether workers compute during an allreduce: with ssgd the same step, with esync the "
        "next round"};

inline constexpr Option<std::uint32_t> fragments{
    .name = "fragments",
    .group = option_group::synchronization,
    .value = "N",
    .help = "esync: a round synchronizes one of N parts of the model, in turn; 1: the whole model",
    .initial = 1,
    .limits = {.least = 1, .most = 1024}};

}  // namespace option

}  // namespace syncopate
