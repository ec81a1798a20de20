#pragma once

#include "job/launch/job_request.hpp"
#include "job/program/loop_site.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// What a program trains, as it says it to the coordinator.
struct LoopDefinition {
  GivenOptions options;  ///< `loop_config` takes them
  LoopModel model;

  friend bool operator==(const LoopDefinition&, const LoopDefinition&) = default;
};

wire::Definition to_wire(const LoopDefinition& definition);
LoopDefinition definition_of(const wire::Definition& definition);

/// Refuses one that is not that of worker 0. Errors: ConfigError, with the first difference.
void expect_same(std::uint32_t rank, const LoopDefinition& own, const LoopDefinition& first);

}  // namespace syncopate
