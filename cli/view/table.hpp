#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::cli {

/// Columns that a text takes on a terminal: its characters, each counted as one wide.
std::size_t width_of(std::string_view text);

/// `line` without the escape sequences that set colours.
std::string without_colours(std::string_view line);

/// `text` in exactly `width` columns: filled with spaces or cut off, control characters replaced.
std::string fitted(std::string_view text, std::size_t width);

/// "12,345".
std::string grouped(std::uint64_t number);

/// Rows of cells under a head, in columns as wide as their widest cell.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string head;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// `cells` has as many as there are columns.
  void add(std::vector<std::string> cells);

  /// The lines, head first, without line ends and without spaces at their ends.
  std::vector<std::string> lines() const;

  /// The same as a table of Markdown.
  std::vector<std::string> markdown() const;

 private:
  std::string line(const std::vector<std::string>& cells,
                   const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace syncopate::cli
