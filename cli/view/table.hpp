#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::cli {

/// Columns that a text takes on a terminal: the count of its characters.
std::size_t width_of(std::string_view text);

/// `line` without the escape sequences that set colours.
std::string without_colours(std::string_view line);

/// `text` in exactly `width` columns: padded or truncated, with control characters replaced.
std::string fitted(std::string_view text, std::size_t width);

/// "12,345".
std::string grouped(std::uint64_t number);

/// A rate per second: "12,345"; below ten with two digits: "0.25".
std::string rate_figure(double rate);

/// Rows of cells below a head. Each column is as wide as its widest cell.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string head;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// `cells` holds one cell for each column.
  void add(std::vector<std::string> cells);

  /// The lines, the head first, without line ends and trailing spaces.
  std::vector<std::string> lines() const;

  /// The same as a Markdown table.
  std::vector<std::string> markdown() const;

  /// Returns the table without the columns in which every row has "-".
  Table without_empty_columns() const;

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::string line(const std::vector<std::string>& cells,
                   const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace syncopate::cli
