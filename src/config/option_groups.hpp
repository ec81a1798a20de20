#pragma once

#include <string_view>

/// The groups of the help text, in its order.
namespace syncopate::option_group {

inline constexpr std::string_view model_and_data = "What is trained";
inline constexpr std::string_view workers = "By whom";
inline constexpr std::string_view optimization = "How";
inline constexpr std::string_view synchronization = "How replicas meet";
inline constexpr std::string_view server = "What a parameter server does";
inline constexpr std::string_view stopping = "Until when";
inline constexpr std::string_view outputs = "What is kept";
inline constexpr std::string_view failures = "When to give up";

}  // namespace syncopate::option_group
