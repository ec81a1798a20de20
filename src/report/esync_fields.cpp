#include "report/esync_fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::esync {
namespace {

using Json = nlohmann::ordered_json;

/// Larger whole numbers are not exact as float64, in which other programs may read them.
constexpr double most_counted = 9007199254740992.0;

const Json* field_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

void refuse(const std::string& where, const std::string& expected, const std::string& name,
            const Json* found) {
  constexpr std::size_t shown_letters = 40;
  throw DataError(
      fmt::format("{}: expected {} in {}, found {}", where, expected, name,
                  found == nullptr ? "no such field" : excerpt(json_text(*found), shown_letters)));
}

std::optional<std::uint64_t> optional_count(const Json& object, const char* name,
                                            const std::string& where) {
  const auto value = field_of(object, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const double number = value->is_number() ? value->get<double>() : -1;
  if (!(number >= 0 && number <= most_counted && std::floor(number) == number)) {
    refuse(where, "a count", name, value);
  }
  return static_cast<std::uint64_t>(number);
}

std::optional<double> optional_seconds(const Json& object, const char* name,
                                       const std::string& where) {
  const auto value = field_of(object, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number() || value->get<double>() < 0) {
    refuse(where, "seconds of 0 or more", name, value);
  }
  return value->get<double>();
}

std::optional<double> optional_number(const Json& object, const char* name,
                                      const std::string& where) {
  const auto value = field_of(object, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number()) {
    refuse(where, "a number", name, value);
  }
  return value->get<double>();
}

std::optional<std::string> optional_text(const Json& object, const char* name,
                                         const std::string& where) {
  const auto value = field_of(object, name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    refuse(where, "text", name, value);
  }
  return value->get<std::string>();
}

}  // namespace syncopate::esync
