#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace syncopate {

class OptionValues;

/// The range of a number.
struct Limits {
  double least = 0;
  double most = std::numeric_limits<double>::max();
  bool above_least = false;  ///< `least` itself is not allowed
  bool below_most = false;   ///< `most` itself is not allowed
};

/// A momentum of 1 would never forget a gradient.
inline constexpr Limits at_least_one{.least = 1};
inline constexpr Limits positive{.above_least = true};
inline constexpr Limits fraction{.most = 1, .above_least = true};
inline constexpr Limits below_one{.most = 1, .below_most = true};

/// The value of an option, whichever way it is written down; empty: the option is not set.
using OptionValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

/// A value as the command line has it; empty for one that is not set.
std::string to_text(const OptionValue& value);

enum class OptionType { flag, whole32, whole64, real, text, path, period };

/// An option, declared once: the command line, the configuration file, the help text, the
/// completion and the JSON of events are all made from this.
struct OptionSpec {
  std::string_view name;   ///< on the command line: "batch-size"
  std::string_view group;  ///< of the help text
  std::string_view value;  ///< stands for a value in the help text; FILE and FOLDER are paths
  std::string_view help;
  Limits limits = {};
  /// All values of a name; null where anything goes.
  std::vector<std::string_view> (*choices)() = nullptr;
  /// Accepts further values of a name, which `value` shows the form of.
  bool (*also)(std::string_view) = nullptr;
  std::string_view when_unset = "";  ///< the default in words, where there is no value to show
  bool resumable = false;            ///< may differ between a run and its resumption

  /// False where other options leave this one without effect; null: it always has one.
  bool (*has_effect)(const OptionValues&) = nullptr;
  std::string_view needs = "";  ///< for `has_effect`, as in "has no effect without …"

  OptionType type = OptionType::text;
  bool may_be_open = false;  ///< "auto" leaves it open
  OptionValue initial{};

  /// The name in a configuration file: "batch_size".
  std::string key() const;
};

/// `value`, if it is one of this option's. "auto" becomes empty where the option may be left open.
/// Errors: ConfigError, "expected …, found …" without the option's name, for a value of another
/// type, out of range or not among the choices.
OptionValue checked(const OptionSpec& option, const OptionValue& value);

/// The value that the command line's `text` stands for. Errors: as `checked`.
OptionValue value_in(const OptionSpec& option, std::string_view text);

}  // namespace syncopate
