#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "train/config.hpp"

namespace syncopate {

/// The values that a number may take.
struct Limits {
  double least = 0;
  double most = std::numeric_limits<double>::max();
  bool above_least = false;  ///< `least` itself is not allowed
  bool below_most = false;   ///< `most` itself is not allowed
};

/// What a field holds, whichever way it is written down; empty: the field is not set.
using FieldValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

/// A field of `TrainConfig`, told once: the command line, the configuration file, the help text, the
/// completion and the JSON of events are all made from this.
struct Field {
  using Member =
      std::variant<bool TrainConfig::*, std::uint32_t TrainConfig::*, std::uint64_t TrainConfig::*,
                   double TrainConfig::*, std::optional<std::uint64_t> TrainConfig::*,
                   std::optional<double> TrainConfig::*, std::string TrainConfig::*,
                   std::filesystem::path TrainConfig::*, Every TrainConfig::*>;

  std::string_view name;   ///< on the command line: "batch-size"
  std::string_view group;  ///< of the help text
  std::string_view value;  ///< stands for a value in the help text; FILE and FOLDER are paths
  std::string_view help;
  Member member;
  Limits limits = {};
  /// All values of a name; null where anything goes.
  std::vector<std::string_view> (*choices)() = nullptr;
  /// Accepts further values of a name, which `value` shows the form of.
  bool (*also)(std::string_view) = nullptr;
  std::string_view when_unset = "";  ///< the default in words, where there is no value to show
  bool resumable = false;            ///< may differ between a run and its resumption

  /// The name in a configuration file: "batch_size".
  std::string key() const;
};

/// All fields, in the order of help texts and configuration files.
std::span<const Field> train_fields();

/// The field of this name on the command line, or null.
const Field* find_field(std::string_view name);

FieldValue get_field(const Field& field, const TrainConfig& config);

/// Sets a field; "auto" leaves open what may be left open. Errors: ConfigError, "expected …, found …" without the field's name, when the value
/// is of another type, out of range or not among the choices.
void set_field(const Field& field, TrainConfig& config, const FieldValue& value);

/// Sets a field from the text that the command line has for it. Errors: as `set_field`.
void set_field_from_text(const Field& field, TrainConfig& config, std::string_view text);

/// A value as the command line has it; empty for an unset field.
std::string to_text(const FieldValue& value);

}  // namespace syncopate
