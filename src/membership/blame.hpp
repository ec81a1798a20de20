#pragma once

#include <vector>

#include "membership/membership.hpp"

namespace syncopate {

/// The decisions, made because these members are said to hang: the abort that each of them receives
/// names it. They live, as far as is known, but do not go on.
Decisions blaming(const std::vector<NodeId>& hung, Decisions decisions);

void append(Decisions& to, Decisions more);

}  // namespace syncopate
