#pragma once

#include <string_view>

/// The groups of help texts, in their order.
namespace syncopate::option_group {

inline constexpr std::string_view model_and_data = "Model and data";
inline constexpr std::string_view workers = "Workers and devices";
inline constexpr std::string_view optimization = "Optimization";
inline constexpr std::string_view synchronization = "Synchronization";
inline constexpr std::string_view server = "Parameter server";
inline constexpr std::string_view compression = "Compression";
inline constexpr std::string_view stopping = "Stopping";
inline constexpr std::string_view outputs = "Outputs";
inline constexpr std::string_view failures = "Failure handling";
inline constexpr std::string_view configuration = "Configuration";
inline constexpr std::string_view logging = "Logging";
inline constexpr std::string_view rendezvous = "Rendezvous";

}  // namespace syncopate::option_group
