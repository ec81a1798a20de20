#pragma once

#include <array>
#include <optional>

#include "config/option_groups.hpp"
#include "scheme/push_pull.hpp"

namespace syncopate {

/// How delay compensation weighs a delay: by λ, or by λ over the root of a moving mean of g².
enum class Compensation { constant, adaptive };
constexpr auto names_of(Compensation) {
  return std::to_array<Named<Compensation>>(
      {{"constant", Compensation::constant}, {"adaptive", Compensation::adaptive}});
}

namespace option {

inline constexpr Option<Compensation> compensation{.name = "compensation",
                                                   .group = option_group::server,
                                                   .value = "NAME",
                                                   .help = "how dc-asgd weighs a delay",
                                                   .initial = Compensation::adaptive};

inline constexpr Option<std::optional<double>> lambda{.name = "lambda",
                                                      .group = option_group::server,
                                                      .value = "X",
                                                      .help = "the weight of dc-asgd",
                                                      .when_unset = "2 adaptive, 0.04 constant"};

}  // namespace option

}  // namespace syncopate
