#include "job/spec/old_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "job/spec/config_fields.hpp"

namespace syncopate {
namespace {

/// A value under the old name, and what says the same today.
struct OldValue {
  std::string_view name;
  std::string_view value;
  std::string_view new_name;
  std::string_view new_value;
};

constexpr std::array old_values{OldValue{"through", "allreduce", "aggregate", "auto"},
                                OldValue{"through", "server", "aggregate", "server"}};

constexpr std::array<std::string_view, 1> names{"through"};

}  // namespace

std::span<const std::string_view> old_option_names() {
  return names;
}

std::optional<std::string_view> set_old_option(TrainConfig& config, std::string_view name,
                                               std::string_view text) {
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return std::nullopt;
  }
  for (const OldValue& old : old_values) {
    if (old.name == name && old.value == text) {
      log::warn("{} {} is now {} {}", name, text, old.new_name, old.new_value);
      set_field_from_text(*find_field(old.new_name), config, old.new_value);
      return old.new_name;
    }
  }
  throw ConfigError(fmt::format("expected one of allreduce, server, found '{}'", text));
}

}  // namespace syncopate
