#pragma once

#include <span>
#include <string>
#include <string_view>

namespace syncopate {

/// The candidate most like `word`, when that is near enough to be what was meant, else empty.
/// Near: an edit distance of at most a third of the word's length, or one is a prefix of the other.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

/// "; did you mean 'ssgd'?", or nothing when no candidate is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace syncopate
