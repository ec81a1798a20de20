#include "cli/view/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printable.hpp"
#include "base/whole.hpp"

namespace syncopate::cli {
namespace {

/// True for a byte of UTF-8 that continues a character.
bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues));
}

std::string without_colours(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = line.find('m', i);
    } else {
      text += line[i];
    }
  }
  return text;
}

std::string fitted(std::string_view text, std::size_t width) {
  std::string result;
  std::size_t columns = 0;
  for (const char byte : printable(text)) {
    if (!continues(byte) && columns++ == width) {
      break;
    }
    result += byte;
  }
  result.append(width - std::min(width, width_of(result)), ' ');
  return result;
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t position = digits.size(); position > 3; position -= 3) {
    digits.insert(position - 3, 1, ',');
  }
  return digits;
}

std::string rate_figure(double rate) {
  constexpr double fewest_whole = 9.95;  // above it two digits are a whole number
  if (!(rate > 0)) {
    return "0";  // whatever a worker has sent
  }
  return rate < fewest_whole ? fmt::format("{:.2g}", rate) : grouped(whole_of(std::round(rate)));
}

void Table::add(std::vector<std::string> cells) {
  rows_.push_back(std::move(cells));
}

std::vector<std::string> Table::lines() const {
  std::vector<std::string> heads;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    heads.push_back(columns_[i].head);
    widths.push_back(width_of(columns_[i].head));
    for (const auto& row : rows_) {
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  }
  std::vector<std::string> lines{line(heads, widths)};
  for (const auto& row : rows_) {
    lines.push_back(line(row, widths));
  }
  return lines;
}

std::vector<std::string> Table::markdown() const {
  const auto row_of = [](const std::vector<std::string>& cells) {
    std::string row = "|";
    for (const std::string& cell : cells) {
      row += " " + cell + " |";
    }
    return row;
  };
  std::vector<std::string> heads;
  std::string rule = "|";
  for (const Column& column : columns_) {
    heads.push_back(column.head);
    rule += column.align == Align::left ? " --- |" : " ---: |";
  }
  std::vector<std::string> lines{row_of(heads), rule};
  for (const auto& row : rows_) {
    lines.push_back(row_of(row));
  }
  return lines;
}

Table Table::without_empty_columns() const {
  Table table({});
  table.rows_.resize(rows_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const bool empty = std::ranges::all_of(rows_, [i](const auto& row) { return row[i] == "-"; });
    if (empty && !rows_.empty()) {
      continue;
    }
    table.columns_.push_back(columns_[i]);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      table.rows_[row].push_back(rows_[row][i]);
    }
  }
  return table;
}

std::string Table::line(const std::vector<std::string>& cells,
                        const std::vector<std::size_t>& widths) const {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string filling(widths[i] - width_of(cells[i]), ' ');
    text += i == 0 ? "" : "  ";
    text += columns_[i].align == Align::left ? cells[i] + filling : filling + cells[i];
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace syncopate::cli
