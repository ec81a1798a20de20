#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace syncopate::esync {

// Values of the JSON objects in logs. `where` is their place, "FILE" or "FILE:LINE". An absent
// field is an empty result; a value of another kind is a DataError that names its place, the field,
// what was expected and what was found.

std::optional<std::uint64_t> optional_count(const nlohmann::ordered_json& object, const char* name,
                                            const std::string& where);
/// Not negative.
std::optional<double> optional_seconds(const nlohmann::ordered_json& object, const char* name,
                                       const std::string& where);
std::optional<double> optional_number(const nlohmann::ordered_json& object, const char* name,
                                      const std::string& where);
std::optional<std::string> optional_text(const nlohmann::ordered_json& object, const char* name,
                                         const std::string& where);

/// Throws the error for a value of another kind. `found` is null for an absent field.
[[noreturn]] void refuse(const std::string& where, const std::string& expected,
                         const std::string& name, const nlohmann::ordered_json* found);

}  // namespace syncopate::esync
