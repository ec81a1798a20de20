#pragma once

#include <optional>

#include "cli/doctor/finding.hpp"
#include "cli/doctor/link_matrix.hpp"
#include "runtime/world.hpp"

namespace syncopate::cli {

/// The findings of all ranks, which rank 0 collects.
struct Consultation {
  Findings findings;
  LinkMatrix links;
};

/// Brings the findings of all ranks to rank 0, each with its rank, and measures what lies between
/// them. A collective of the group; empty on other ranks than 0. Errors: those of transports.
std::optional<Consultation> consult(Group& all, Findings own);

}  // namespace syncopate::cli
