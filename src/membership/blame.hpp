#pragma once

#include <vector>

#include "membership/membership.hpp"

namespace syncopate {

/// Marks decisions as made because these members hang: they live, as far as is known, but make no
/// progress. The abort that each of them receives then names it.
Decisions blaming(const std::vector<NodeId>& hung, Decisions decisions);

void append(Decisions& to, Decisions more);

}  // namespace syncopate
