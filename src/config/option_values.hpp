#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <type_traits>

#include "base/errors.hpp"
#include "config/option.hpp"

namespace syncopate {

/// A value of an enumeration, and its name on the command line. An enumeration that is the type of
/// an option has a function `names_of` beside it:
///
///     enum class Commit { barrier, overlap };
///     constexpr auto names_of(Commit) {
///       return std::to_array<Named<Commit>>(
///           {{"barrier", Commit::barrier}, {"overlap", Commit::overlap}});
///     }
template <class Enum>
struct Named {
  std::string_view name;
  Enum value;
};

template <class Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) {
  names_of(value);
};

/// Errors: InternalError if the value has no name.
template <NamedEnum Enum>
std::string_view name_of_value(Enum value) {
  for (const auto& [name, named] : names_of(value)) {
    if (named == value) {
      return name;
    }
  }
  throw InternalError("an enumeration's value without a name");
}

/// Errors: InternalError if no value has this name; names are checked where they are read.
template <NamedEnum Enum>
Enum value_named(std::string_view wanted) {
  for (const auto& [name, value] : names_of(Enum{})) {
    if (name == wanted) {
      return value;
    }
  }
  throw InternalError("a name that was not checked: " + std::string(wanted));
}

/// An option whose values have the type T: bool, std::uint32_t, double, std::optional<double>, or
/// an enumeration whose values have names.
template <class T>
struct Option {
  std::string_view name;
  std::string_view group;
  std::string_view value;
  std::string_view help;
  T initial{};
  Limits limits = {};
  std::string_view when_unset = "";
  bool (*has_effect)(const OptionValues&) = nullptr;
  std::string_view needs = "";
};

/// How values of a type are written down.
template <class T>
struct OptionTraits;

template <>
struct OptionTraits<bool> {
  static constexpr OptionType type = OptionType::flag;
  static constexpr bool may_be_open = false;
  static OptionValue written(bool value) { return value; }
  static bool read(const OptionValue& value) { return std::get<bool>(value); }
};

template <>
struct OptionTraits<std::uint32_t> {
  static constexpr OptionType type = OptionType::whole32;
  static constexpr bool may_be_open = false;
  static OptionValue written(std::uint32_t value) { return std::int64_t{value}; }
  static std::uint32_t read(const OptionValue& value) {
    return static_cast<std::uint32_t>(std::get<std::int64_t>(value));
  }
};

template <>
struct OptionTraits<std::uint64_t> {
  static constexpr OptionType type = OptionType::whole64;
  static constexpr bool may_be_open = false;
  static OptionValue written(std::uint64_t value) { return static_cast<std::int64_t>(value); }
  static std::uint64_t read(const OptionValue& value) {
    return static_cast<std::uint64_t>(std::get<std::int64_t>(value));
  }
};

template <>
struct OptionTraits<std::string> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const std::string& value) { return value; }
  static std::string read(const OptionValue& value) { return std::get<std::string>(value); }
};

/// An empty path is one that is not set.
template <>
struct OptionTraits<std::filesystem::path> {
  static constexpr OptionType type = OptionType::path;
  static constexpr bool may_be_open = false;
  static OptionValue written(const std::filesystem::path& value) {
    return value.empty() ? OptionValue() : OptionValue(value.string());
  }
  static std::filesystem::path read(const OptionValue& value) {
    return std::get<std::string>(value);
  }
};

template <>
struct OptionTraits<double> {
  static constexpr OptionType type = OptionType::real;
  static constexpr bool may_be_open = false;
  static OptionValue written(double value) { return value; }
  static double read(const OptionValue& value) { return std::get<double>(value); }
};

template <class T>
struct OptionTraits<std::optional<T>> {
  static constexpr OptionType type = OptionTraits<T>::type;
  static constexpr bool may_be_open = true;
  static OptionValue written(const std::optional<T>& value) {
    return value ? OptionTraits<T>::written(*value) : OptionValue();
  }
  static std::optional<T> read(const OptionValue& value) {
    const bool open = std::holds_alternative<std::monostate>(value);
    return open ? std::nullopt : std::optional(OptionTraits<T>::read(value));
  }
};

template <NamedEnum Enum>
struct OptionTraits<Enum> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(Enum value) { return std::string(name_of_value(value)); }
  static Enum read(const OptionValue& value) {
    return value_named<Enum>(std::get<std::string>(value));
  }
  static std::vector<std::string_view> choices() {
    std::vector<std::string_view> names;
    for (const auto& named : names_of(Enum{})) {
      names.push_back(named.name);
    }
    return names;
  }
};

/// Empty is "auto".
template <NamedEnum Enum>
struct OptionTraits<std::optional<Enum>> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = true;
  static OptionValue written(const std::optional<Enum>& value) {
    return value ? OptionTraits<Enum>::written(*value) : OptionValue();
  }
  static std::optional<Enum> read(const OptionValue& value) {
    const bool open = std::holds_alternative<std::monostate>(value);
    return open ? std::nullopt : std::optional(OptionTraits<Enum>::read(value));
  }
  static std::vector<std::string_view> choices() {
    std::vector<std::string_view> names = OptionTraits<Enum>::choices();
    names.insert(names.begin(), "auto");
    return names;
  }
};

/// The declaration of `option` without its type, for command line, configuration file and help
/// texts.
template <class T>
OptionSpec spec_of(const Option<T>& option) {
  OptionSpec spec{.name = option.name,
                  .group = option.group,
                  .value = option.value,
                  .help = option.help,
                  .limits = option.limits,
                  .when_unset = option.when_unset,
                  .has_effect = option.has_effect,
                  .needs = option.needs,
                  .type = OptionTraits<T>::type,
                  .may_be_open = OptionTraits<T>::may_be_open,
                  .initial = OptionTraits<T>::written(option.initial)};
  if constexpr (requires { OptionTraits<T>::choices(); } && !OptionTraits<T>::may_be_open) {
    spec.choices = &OptionTraits<T>::choices;
  }
  return spec;
}

/// Values of options, by name. An option that was never set has its initial value.
class OptionValues {
 public:
  template <class T>
  T operator[](const Option<T>& option) const {
    const auto found = set_.find(option.name);
    return found == set_.end() ? option.initial : OptionTraits<T>::read(found->second);
  }

  template <class T>
  void set(const Option<T>& option, const std::type_identity_t<T>& value) {
    set(spec_of(option), OptionTraits<T>::written(value));
  }

  OptionValue get(const OptionSpec& option) const {
    const auto found = set_.find(option.name);
    return found == set_.end() ? option.initial : found->second;
  }

  /// `value` has been `checked`.
  void set(const OptionSpec& option, const OptionValue& value) {
    set_.erase(std::string(option.name));
    if (value != option.initial) {
      set_.emplace(option.name, value);
    }
  }

  friend bool operator==(const OptionValues&, const OptionValues&) = default;

 private:
  std::map<std::string, OptionValue, std::less<>>
      set_;  ///< those that differ from their initial value
};

}  // namespace syncopate
