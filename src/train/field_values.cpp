#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <type_traits>

#include "base/errors.hpp"
#include "train/config_fields.hpp"
#include "train/names.hpp"

namespace syncopate {
namespace {

std::string in_words(const Limits& limits) {
  const auto least = fmt::format("{} {}", limits.above_least ? "above" : "from", limits.least);
  if (limits.most == std::numeric_limits<double>::max()) {
    return least;
  }
  return fmt::format("{} {} {}", least, limits.below_most ? "and below" : "to", limits.most);
}

[[noreturn]] void refuse(std::string_view expected, const FieldValue& found,
                         std::string_view hint = "") {
  const std::string text = to_text(found);
  const bool quoted = std::holds_alternative<std::string>(found);
  throw ConfigError(fmt::format("expected {}, found {}{}", expected,
                                quoted ? fmt::format("'{}'", text) : text, hint));
}

void check_limits(const Limits& limits, std::string_view kind, double number,
                  const FieldValue& value) {
  const bool enough = limits.above_least ? number > limits.least : number >= limits.least;
  const bool too_much = limits.below_most ? number >= limits.most : number > limits.most;
  if (!enough || too_much) {
    refuse(fmt::format("{} {}", kind, in_words(limits)), value);
  }
}

void check_choice(const Field& field, const std::string& name) {
  if (field.choices == nullptr || (field.also != nullptr && field.also(name))) {
    return;
  }
  const auto choices = field.choices();
  if (std::find(choices.begin(), choices.end(), name) == choices.end()) {
    std::string all = fmt::format("{}", fmt::join(choices, ", "));
    if (field.also != nullptr) {
      all += fmt::format(", {}", field.value);
    }
    refuse("one of " + all, name, suggestion(name, choices));
  }
}

// Reading a `FieldValue` as a member's type, checked.

void read(const Field&, const FieldValue& value, bool& into) {
  if (!std::holds_alternative<bool>(value)) {
    refuse("true or false", value);
  }
  into = std::get<bool>(value);
}

template <std::unsigned_integral Number>
void read(const Field& field, const FieldValue& value, Number& into) {
  Limits limits = field.limits;
  if (sizeof(Number) == sizeof(std::uint32_t)) {
    limits.most = std::min<double>(limits.most, std::numeric_limits<std::uint32_t>::max());
  }
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number == nullptr) {
    refuse(fmt::format("a whole number {}", in_words(field.limits)), value);
  }
  check_limits(limits, "a whole number", static_cast<double>(*number), value);
  into = static_cast<Number>(*number);
}

void read(const Field& field, const FieldValue& value, double& into) {
  double number = 0;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    number = static_cast<double>(*whole);
  } else if (const auto* real = std::get_if<double>(&value)) {
    number = *real;
  } else {
    refuse(fmt::format("a number {}", in_words(field.limits)), value);
  }
  check_limits(field.limits, "a number", number, value);
  into = number;
}

void read(const Field& field, const FieldValue& value, std::string& into) {
  if (!std::holds_alternative<std::string>(value)) {
    refuse("a text", value);
  }
  check_choice(field, std::get<std::string>(value));
  into = std::get<std::string>(value);
}

void read(const Field&, const FieldValue& value, std::filesystem::path& into) {
  if (!std::holds_alternative<std::string>(value)) {
    refuse("a path", value);
  }
  into = std::get<std::string>(value);
}

void read(const Field&, const FieldValue& value, Every& into) {
  into = Every::parse(to_text(value));
}

template <class Number>
void read(const Field& field, const FieldValue& value, std::optional<Number>& into) {
  if (value == FieldValue(std::string("auto"))) {
    into.reset();
    return;
  }
  Number number{};
  read(field, value, number);
  into = number;
}

// Writing a member as a `FieldValue`.

FieldValue write(bool value) {
  return value;
}

template <std::unsigned_integral Number>
FieldValue write(Number value) {
  return static_cast<std::int64_t>(value);
}

FieldValue write(double value) {
  return value;
}

FieldValue write(const std::string& value) {
  return value;
}

FieldValue write(const std::filesystem::path& value) {
  return value.empty() ? FieldValue() : FieldValue(value.string());
}

FieldValue write(const Every& value) {
  return value.to_string();
}

template <class Number>
FieldValue write(const std::optional<Number>& value) {
  return value ? write(*value) : FieldValue();
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole_text = end == text.data() + text.size();
  return error == std::errc() && whole_text ? std::optional(number) : std::nullopt;
}

/// The most special value that a text can be read as.
FieldValue value_in(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  if (const auto whole = number_in<std::int64_t>(text)) {
    return *whole;
  }
  if (const auto real = number_in<double>(text); real && std::isfinite(*real)) {
    return *real;
  }
  return std::string(text);
}

}  // namespace

FieldValue get_field(const Field& field, const TrainConfig& config) {
  return std::visit([&](auto member) { return write(config.*member); }, field.member);
}

void set_field(const Field& field, TrainConfig& config, const FieldValue& value) {
  std::visit([&](auto member) { read(field, value, config.*member); }, field.member);
}

void set_field_from_text(const Field& field, TrainConfig& config, std::string_view text) {
  const bool is_text = std::holds_alternative<std::string TrainConfig::*>(field.member) ||
                       std::holds_alternative<std::filesystem::path TrainConfig::*>(field.member) ||
                       std::holds_alternative<Every TrainConfig::*>(field.member);
  set_field(field, config, is_text ? FieldValue(std::string(text)) : value_in(text));
}

std::string to_text(const FieldValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return "";
        } else {
          return fmt::format("{}", held);
        }
      },
      value);
}

}  // namespace syncopate
