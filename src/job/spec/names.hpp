#pragma once

#include <span>
#include <string>
#include <string_view>

/// The names that a configuration may use, for those who check one without libtorch at hand.
namespace syncopate {

/// How data is split over workers, besides dirichlet:ALPHA.
std::span<const std::string_view> known_splits();
/// What values become while they travel, but for topk:RATIO.
std::span<const std::string_view> known_compressions();

}  // namespace syncopate
