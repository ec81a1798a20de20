#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// The values that a number may take, both ends included.
struct Interval {
  double least = 0;
  double most = 0;
};

/// A table of a TOML file, read strictly.
///
/// Every error is a ConfigError of one line that begins with `file:line:column`. An absent key is an
/// empty result; a value of another type, or out of range, is refused.
class TomlTable {
 public:
  /// `what` names the table in messages: "[[devices]]". `table` must outlive this.
  TomlTable(std::string file, const toml::table& table, std::string what);

  /// Refuses every key but `keys`, and suggests the nearest of them.
  void allow(std::initializer_list<std::string_view> keys) const;

  std::optional<std::string> text(std::string_view key) const;
  std::optional<double> number(std::string_view key, Interval allowed) const;
  std::optional<std::uint32_t> whole(std::string_view key, Interval allowed) const;
  /// A number that must be there.
  double needed_number(std::string_view key, Interval allowed) const;

  std::optional<TomlTable> table(std::string_view key) const;
  /// An array of tables; none when the key is absent.
  std::vector<TomlTable> tables(std::string_view key) const;

  [[noreturn]] void refuse(std::string_view message) const;

 private:
  [[noreturn]] void refuse_at(const toml::node& node, std::string_view message) const;
  [[noreturn]] void refuse_type(std::string_view key, const toml::node& found,
                                std::string_view expected) const;

  std::string file_;
  const toml::table* table_;
  std::string what_;
};

/// Parses a file. Errors: ConfigError, `file:line:column: …`, when it is not TOML; DataError, when
/// it cannot be read.
toml::table parse_toml(const std::filesystem::path& path);

}  // namespace syncopate
