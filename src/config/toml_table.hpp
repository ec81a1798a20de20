#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/option.hpp"

namespace syncopate {

/// The values that a number may take, both ends included.
struct Interval {
  double least = 0;
  double most = 0;
};

/// A table of a TOML file, read strictly.
///
/// Every error is a ConfigError of one line that begins with `file:line:column`. An absent key is
/// an empty result; a value of another type, or out of range, is refused.
class TomlTable {
 public:
  /// The longest text that is read: a cluster of 1,024 devices takes a tenth of it.
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  /// Reads a file. `title` names its table in messages: "a cluster file"; it may be empty.
  /// Errors: ConfigError, when the file is not TOML or nests too deep; DataError, when it cannot be
  ///         read or is too long.
  static TomlTable read(const std::filesystem::path& path, std::string title);
  /// Reads a text, which may come from another process. `source` stands for the file in messages.
  /// Errors: ConfigError, when the text is not TOML, is too long or nests too deep.
  static TomlTable parse(std::string_view text, std::string source, std::string title);

  /// Refuses every key but `keys`, and suggests the nearest of them.
  void allow(std::initializer_list<std::string_view> keys) const;

  /// Passes each key and its value to `set`, in the order of keys. An array, a table or a date is
  /// refused if its key is one of `known`; else its value is empty. A ConfigError of `set` gets the
  /// position of the value. If `set` returns false, the key is refused, and the nearest of `known`
  /// is suggested.
  using SetValue = std::function<bool(std::string_view key, const OptionValue& value)>;
  void for_each(const SetValue& set, std::span<const std::string_view> known) const;

  std::optional<std::string> text(std::string_view key) const;
  std::optional<double> number(std::string_view key, Interval allowed) const;
  std::optional<std::uint32_t> whole(std::string_view key, Interval allowed) const;
  /// A number that must be present.
  double needed_number(std::string_view key, Interval allowed) const;

  std::optional<TomlTable> table(std::string_view key) const;
  /// An array of tables; none when the key is absent.
  std::vector<TomlTable> tables(std::string_view key) const;

  [[noreturn]] void refuse(std::string_view message) const;

 private:
  TomlTable() = default;
  TomlTable(const TomlTable& parent, const toml::table& table, std::string title);

  [[noreturn]] void refuse_at(const toml::source_region& where, std::string_view message) const;
  [[noreturn]] void refuse_key(const toml::key& key, std::span<const std::string_view> known) const;
  [[noreturn]] void refuse_type(std::string_view key, const toml::node& found,
                                std::string_view expected) const;

  std::string file_;
  std::shared_ptr<const toml::table> document_;  ///< owned by all tables of the document
  const toml::table* table_ = nullptr;
  std::string title_;
};

/// A value as `TomlTable` reads it back.
std::string to_toml(const OptionValue& value);

}  // namespace syncopate
