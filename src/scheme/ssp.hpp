#pragma once

#include "config/option_groups.hpp"
#include "scheme/push_pull.hpp"

namespace syncopate {

namespace option {

inline constexpr Option<std::uint32_t> slack{
    .name = "slack",
    .group = option_group::server,
    .value = "N",
    .help = "steps that ssp lets a worker be ahead of the slowest",
    .initial = 3};

}  // namespace option

}  // namespace syncopate
