#pragma once

#include "config/option_groups.hpp"
#include "scheme/push_pull.hpp"

namespace syncopate {

namespace option {

inline constexpr Option<std::uint32_t> backup_workers{
    .name = "backup-workers",
    .group = option_group::server,
    .value = "N",
    .help = "gradients of a step that backup does not wait for",
    .initial = 1};

}  // namespace option

}  // namespace syncopate
