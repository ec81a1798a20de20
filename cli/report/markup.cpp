#include "cli/report/markup.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace syncopate::cli {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

/// At each position, replaces the text by the first entry of the table that matches.
template <std::size_t Count>
std::string replaced(std::string_view text, const std::array<Replacement, Count>& table) {
  std::string result;
  while (!text.empty()) {
    std::string_view found = text.substr(0, 1);
    std::string_view by = found;
    for (const auto& [from, to] : table) {
      if (text.starts_with(from)) {
        found = from;
        by = to;
        break;
      }
    }
    result += by;
    text.remove_prefix(found.size());
  }
  return result;
}

constexpr std::array<Replacement, 16> latex_table{{{"\\", "\\textbackslash{}"},
                                                   {"{", "\\{"},
                                                   {"}", "\\}"},
                                                   {"$", "\\$"},
                                                   {"&", "\\&"},
                                                   {"#", "\\#"},
                                                   {"_", "\\_"},
                                                   {"%", "\\%"},
                                                   {"~", "\\textasciitilde{}"},
                                                   {"^", "\\textasciicircum{}"},
                                                   {"<", "\\textless{}"},
                                                   {">", "\\textgreater{}"},
                                                   {"|", "\\textbar{}"},
                                                   {"\"", "\\textquotedbl{}"},
                                                   {"±", "$\\pm$"},
                                                   {"×", "$\\times$"}}};

constexpr std::array<Replacement, 4> html_table{
    {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}}};

std::string latex_row(const std::vector<std::string>& cells) {
  std::string row;
  for (const std::string& cell : cells) {
    row += (row.empty() ? "" : " & ") + latex_escaped(cell);
  }
  return row + " \\\\\n";
}

std::string html_row(const std::vector<std::string>& cells,
                     const std::vector<Table::Column>& columns, const char* tag) {
  std::string row = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool left = columns[i].align == Table::Align::left;
    row += fmt::format("<{0}{1}>{2}</{0}>", tag, left ? " class=\"left\"" : "",
                       html_escaped(cells[i]));
  }
  return row + "</tr>\n";
}

std::vector<std::string> heads_of(const Table& table) {
  std::vector<std::string> heads;
  for (const Table::Column& column : table.columns()) {
    heads.push_back(column.head);
  }
  return heads;
}

}  // namespace

std::string latex_escaped(std::string_view text) {
  return replaced(text, latex_table);
}

std::string html_escaped(std::string_view text) {
  return replaced(text, html_table);
}

std::string latex_of(const TitledTable& titled) {
  std::string columns;
  for (const Table::Column& column : titled.table.columns()) {
    columns += column.align == Table::Align::left ? 'l' : 'r';
  }
  std::string text = fmt::format(
      "\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\begin{{tabular}}{{{}}}\n\\toprule\n{}"
      "\\midrule\n",
      latex_escaped(titled.title), columns, latex_row(heads_of(titled.table)));
  for (const auto& row : titled.table.rows()) {
    text += latex_row(row);
  }
  return text + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

std::string latex_of(const Plot& plot, const std::string& heading) {
  return fmt::format(
      "\\begin{{figure}}\n\\centering\n\\includegraphics[width=\\linewidth]{{figures/{}.pdf}}\n"
      "\\caption{{{}: {}}}\n\\end{{figure}}\n",
      plot.name, latex_escaped(heading), latex_escaped(plot.caption));
}

std::string html_of(const TitledTable& titled) {
  const auto& columns = titled.table.columns();
  std::string text =
      fmt::format("<h3>{}</h3>\n<div class=\"wide\"><table>\n<thead>{}</thead>\n<tbody>\n",
                  html_escaped(titled.title), html_row(heads_of(titled.table), columns, "th"));
  for (const auto& row : titled.table.rows()) {
    text += html_row(row, columns, "td");
  }
  return text + "</tbody>\n</table></div>\n";
}

std::string inline_svg(const std::string& svg, const std::string& prefix) {
  const std::size_t begin = svg.find("<svg");
  if (begin == std::string::npos) {
    return "";
  }
  const std::array<Replacement, 5> references{{{"id=\"", "id=\""},
                                               {"id='", "id='"},
                                               {"href='#", "href='#"},
                                               {"href=\"#", "href=\"#"},
                                               {"url(#", "url(#"}}};
  std::string result;
  std::string_view left = std::string_view(svg).substr(begin);
  while (!left.empty()) {
    std::size_t taken = 1;
    for (const auto& reference : references) {
      if (left.starts_with(reference.first)) {
        taken = reference.first.size();
        break;
      }
    }
    result += left.substr(0, taken);
    result += taken > 1 ? prefix + "-" : "";
    left.remove_prefix(taken);
  }
  return result;
}

}  // namespace syncopate::cli
