#pragma once

#include <span>
#include <string>
#include <string_view>

/// The names that a configuration may use, for those who check one without libtorch at hand.
namespace syncopate {

/// The same names as `torch_backend::optimizer_names()`.
std::span<const std::string_view> known_optimizers();
/// Whether `optimizer` reads `TrainConfig::momentum`, `beta1` and `beta2`, `alpha`, `epsilon`.
bool uses_momentum(std::string_view optimizer);
bool uses_betas(std::string_view optimizer);
bool uses_alpha(std::string_view optimizer);
bool uses_epsilon(std::string_view optimizer);

/// How data is split over workers, besides dirichlet:ALPHA.
std::span<const std::string_view> known_splits();
/// What values become while they travel, but for topk:RATIO.
std::span<const std::string_view> known_compressions();

}  // namespace syncopate
