#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace syncopate {

/// The groups of help texts, in their order.
namespace option_group {

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

}  // namespace option_group

class OptionValues;

/// The range of a number. Every option has an upper bound, so that sums, products and conversions
/// of accepted numbers stay within their types.
struct Limits {
  double least = 0;
  double most = 1e9;
  bool above_least = false;  ///< `least` itself is not allowed
  bool below_most = false;   ///< `most` itself is not allowed
};

inline constexpr Limits at_least_one{.least = 1};
/// Limits of the steps between two events, and of the parts of a batch.
inline constexpr Limits step_counts{.least = 1, .most = 1'000'000};
/// Limits of the samples in a batch: 1,024 workers have fewer than 2^32 samples in a step.
inline constexpr Limits batch_sizes{.least = 1, .most = 1 << 20};
/// Limits of the side of an image in pixels.
inline constexpr Limits image_sides{.least = 1, .most = 4096};
/// The largest number of workers, and of servers.
inline constexpr double most_workers = 1024;
inline constexpr Limits positive{.above_least = true};
/// Limits of a time in seconds: three years, so that the sum of many fits into a `Duration`.
inline constexpr Limits seconds_above_zero{.most = 1e8, .above_least = true};
inline constexpr Limits seconds_from_zero{.most = 1e8};
/// Limits of a number of epochs.
inline constexpr Limits epochs_above_zero{.most = 1e6, .above_least = true};
inline constexpr Limits epochs_from_zero{.most = 1e6};
/// Limits of a learning rate: a float32 holds it. A rate at which training diverges is allowed.
inline constexpr Limits rates{.most = 1e38, .above_least = true};
/// Limits of a seed: any number that a TOML file can hold.
inline constexpr Limits seeds{.most = 9223372036854775807.0};
inline constexpr Limits fraction{.most = 1, .above_least = true};
/// Limits of a momentum or a decay: with 1, an old gradient would never lose weight.
inline constexpr Limits below_one{.most = 1, .below_most = true};

/// The value of an option; empty: the option is not set.
using OptionValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

/// The text of a value on the command line; empty for an option that is not set.
std::string to_text(const OptionValue& value);

enum class OptionType {
  flag,
  whole32,
  whole64,
  counts,  ///< a whole number, or several with commas between them, by rank
  real,
  text,
  path,
  period,
};

/// An option, declared once. The command line, the configuration file, the help text, the
/// completion and the JSON of events all read this declaration.
struct OptionSpec {
  std::string_view name;   ///< on the command line: "batch-size"
  std::string_view group;  ///< of the help text
  std::string_view value;  ///< placeholder of a value in the help text; FILE and FOLDER are paths
  std::string_view help;
  Limits limits = {};
  /// All names that the option takes; null: it takes any text.
  std::vector<std::string_view> (*choices)() = nullptr;
  /// Accepts further names, in the form that `value` shows; null: none.
  bool (*also)(std::string_view) = nullptr;
  bool also_paths = false;  ///< these are paths, which a shell completes
  std::string_view when_unset =
      "";                  ///< the default in words, for an option without an initial value
  bool resumable = false;  ///< may change when a run is resumed

  /// False if other options make this one irrelevant; null: it always has an effect.
  bool (*has_effect)(const OptionValues&) = nullptr;
  std::string_view needs = "";  ///< for `has_effect`, as in "has no effect without …"

  OptionType type = OptionType::text;
  bool may_be_open = false;  ///< "auto" leaves the option open
  OptionValue initial{};

  /// The name in a configuration file: "batch_size".
  std::string key() const;
};

/// Returns `value` if the option accepts it. "auto" becomes empty if the option may be left open.
/// Errors: ConfigError, "expected …, found …" without the option's name, if the value is of another
/// type, out of range or not among the choices.
OptionValue checked(const OptionSpec& option, const OptionValue& value);

/// Refuses a text that a file or a JSON log cannot hold. Errors: ConfigError if the text is not
/// UTF-8 or holds the character NUL.
void check_text(std::string_view text);

/// Refuses a path that the system does not take. Errors: as `check_text`; ConfigError if the path,
/// with the name of a file after it, or a name in it is too long.
void check_path(std::string_view path);

/// The value that the command line's `text` stands for. Errors: as `checked`.
OptionValue value_in(const OptionSpec& option, std::string_view text);

}  // namespace syncopate
