#include "cli/report/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/printable.hpp"
#include "cli/report/esync_paper_json.hpp"
#include "cli/report/log_lines.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Formats a number with three significant digits, but with all digits before the point.
std::string short_number(double value) {
  return value < 1000 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

std::string range_words(double least, double most, double scale, const char* unit) {
  const std::string low = short_number(scale * least);
  const std::string high = short_number(scale * most);
  return low == high ? fmt::format("{}{}", low, unit) : fmt::format("{} to {}{}", low, high, unit);
}

/// A kind of figure: the format of its values, and the function that finds it in our runs.
struct FigureKind {
  const char* name;
  const char* title;
  double scale;
  const char* unit;
  std::optional<MinMax> (*here)(const ContestantFigures& one);
};

std::optional<MinMax> one_value(std::optional<double> value) {
  return value ? std::optional(MinMax{*value, *value}) : std::nullopt;
}

std::optional<MinMax> speed_up_here(const ContestantFigures& one) {
  return one_value(one.speed_up);
}

std::optional<MinMax> throughput_here(const ContestantFigures& one) {
  return one_value(one.throughput);
}

std::optional<MinMax> traffic_here(const ContestantFigures& one) {
  const auto found = one.totals_per_sample.find("exchanged_bytes");
  return found == one.totals_per_sample.end() || !one.throughput
             ? std::nullopt
             : one_value(found->second * *one.throughput / 1e6);
}

std::optional<MinMax> computing_here(const ContestantFigures& one) {
  return range_of(one.devices, &DeviceFigures::computing);
}

std::optional<MinMax> accuracy_here(const ContestantFigures& one) {
  return one.accuracy ? one_value(one.accuracy->mean) : std::nullopt;
}

constexpr std::array<FigureKind, 5> figure_kinds{
    {{"speed_up", "speed-up over ssgd", 1, "", speed_up_here},
     {"throughput", "throughput", 1, " samples/s", throughput_here},
     {"traffic_mb_per_s", "traffic", 1, " MB/s", traffic_here},
     {"computing_time_ratio", "computing time ratio", 100, " %", computing_here},
     {"accuracy", "accuracy", 1, "", accuracy_here}}};

std::string with_deviation(const std::string& value, std::optional<double> deviation) {
  return deviation ? fmt::format("{} ± {:.3g}", value, *deviation) : value;
}

std::string published_text(const std::vector<const PublishedFigure*>& figures,
                           const FigureKind& kind, const std::string& network) {
  std::vector<double> values;
  for (const PublishedFigure* one : figures) {
    if (one->network.empty() || one->network == network) {
      const auto [least, most] = std::minmax_element(one->values.begin(), one->values.end());
      return with_deviation(range_words(*least, *most, kind.scale, kind.unit), one->deviation);
    }
    values.insert(values.end(), one->values.begin(), one->values.end());
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return range_words(*least, *most, kind.scale, kind.unit) + " (other networks)";
}

std::string here_text(const ContestantFigures& one, const FigureKind& kind) {
  const auto value = kind.here(one);
  if (!value) {
    return "-";
  }
  const bool is_accuracy = kind.here == accuracy_here;
  return with_deviation(
      range_words(value->least, value->most, kind.scale, kind.unit),
      is_accuracy && one.tested > 1 ? std::optional(one.accuracy->deviation) : std::nullopt);
}

std::string text_option(const RunRecord& run, const char* key) {
  const auto found = run.options.find(key);
  return found == run.options.end() ? "" : found->second;
}

/// The groups of a scheme that ran on the whole cluster, not only on its fast devices.
std::vector<const ContestantFigures*> groups_of(const Setting& setting, const std::string& scheme) {
  std::vector<const ContestantFigures*> groups;
  for (const RunGroup& group : setting.groups) {
    const RunRecord& run = group.runs.front();
    const auto own = std::filesystem::path(text_option(run, "cluster")).stem();
    if (text_option(run, "scheme") == scheme && own == setting.cluster) {
      groups.push_back(&group.figures);
    }
  }
  return groups;
}

constexpr std::size_t shown_letters = 40;

/// The line in which the parser stopped, behind `byte` bytes.
std::string line_at(std::string_view text, std::size_t byte) {
  const std::string_view whole = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  const std::string_view before = whole.substr(0, byte == 0 ? 0 : byte - 1);
  const std::size_t begin = before.rfind('\n') + 1;  // 0 in the first line
  const std::string_view line = whole.substr(begin, whole.find('\n', begin) - begin);
  return fmt::format("'{}' in line {}", excerpt(line, shown_letters),
                     1 + std::count(before.begin(), before.end(), '\n'));
}

/// Parses JSON. Replaces the parser's messages, which describe its internal states and depend on
/// its version.
Json json_in(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw ConfigError(
        fmt::format("expected JSON, found {}; correct it", line_at(text, error.byte)));
  } catch (const Json::exception&) {
    throw ConfigError("expected numbers below 1.8e308, found a greater one; correct it");
  }
}

/// `what`: the expected value and its place, as in "a number in figures[0].value". `found` is null
/// if there is no such field.
[[noreturn]] void refuse(const std::string& what, const Json& found) {
  const std::string text = found.is_null() ? "no value" : excerpt(json_text(found), shown_letters);
  throw ConfigError(fmt::format("expected {}, found {}; correct it", what, text));
}

std::string text_of_value(const Json& value, const std::string& place) {
  if (!value.is_string()) {
    refuse("a text in " + place, value);
  }
  return value.get<std::string>();
}

double number_of_value(const Json& value, const std::string& place) {
  if (!value.is_number()) {
    refuse("a number in " + place, value);
  }
  return value.get<double>();
}

std::string kind_of_figure(const Json& value, const std::string& place) {
  std::string name = text_of_value(value, place);
  const auto known = std::any_of(figure_kinds.begin(), figure_kinds.end(),
                                 [&](const auto& kind) { return name == kind.name; });
  if (!known) {
    refuse(
        "one of speed_up, throughput, traffic_mb_per_s, computing_time_ratio, accuracy in " + place,
        value);
  }
  return name;
}

std::vector<double> values_of(const Json& figure, const std::string& place) {
  if (!figure.contains("values")) {
    return {number_of_value(figure.value("value", Json()), place + ".value")};
  }
  const Json& list = figure.at("values");
  if (!list.is_array() || list.empty()) {
    refuse("a list of numbers in " + place + ".values", list);
  }
  std::vector<double> values;
  for (const Json& value : list) {
    values.push_back(number_of_value(value, fmt::format("{}.values[{}]", place, values.size())));
  }
  return values;
}

/// `place`: of the object, "figures[0]".
PublishedFigure published_figure(const Json& object, const std::string& place) {
  if (!object.is_object()) {
    refuse("an object in " + place, object);
  }
  PublishedFigure figure{
      .figure = kind_of_figure(object.value("figure", Json()), place + ".figure"),
      .scheme = text_of_value(object.value("scheme", Json()), place + ".scheme")};
  if (object.contains("network")) {
    figure.network = text_of_value(object.at("network"), place + ".network");
  }
  figure.values = values_of(object, place);
  if (object.contains("deviation")) {
    figure.deviation = number_of_value(object.at("deviation"), place + ".deviation");
  }
  return figure;
}

Published published_of(const Json& object) {
  if (!object.is_object()) {
    refuse("an object with source and figures", object);
  }
  Published published{.source = text_of_value(object.value("source", Json()), "source")};
  if (object.contains("cluster")) {
    published.cluster = text_of_value(object.at("cluster"), "cluster");
  }
  const Json figures = object.value("figures", Json());
  if (!figures.is_array()) {
    refuse("a list in figures", figures);
  }
  for (const Json& figure : figures) {
    const auto place = fmt::format("figures[{}]", published.figures.size());
    published.figures.push_back(published_figure(figure, place));
  }
  return published;
}

}  // namespace

Published published_in(std::string_view text, const std::string& source) {
  try {
    return published_of(json_in(text));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", source, error.what()));
  }
}

Published read_published(const std::filesystem::path& file) {
  return published_in(read_file(file), "--reference: " + file.string());
}

const Published& esync_paper() {
  static const Published paper = published_in(esync_paper_json, "the figures of ESync");
  return paper;
}

namespace {

/// The schemes that have published figures, in the order of their first ones.
std::vector<std::string> schemes_of(const Published& published) {
  std::vector<std::string> schemes;
  for (const PublishedFigure& one : published.figures) {
    if (std::find(schemes.begin(), schemes.end(), one.scheme) == schemes.end()) {
      schemes.push_back(one.scheme);
    }
  }
  return schemes;
}

std::vector<const PublishedFigure*> published_for(const Published& published,
                                                  const std::string& scheme,
                                                  const FigureKind& kind) {
  std::vector<const PublishedFigure*> figures;
  for (const PublishedFigure& one : published.figures) {
    if (one.scheme == scheme && one.figure == kind.name) {
      figures.push_back(&one);
    }
  }
  return figures;
}

/// Adds a row for each group of runs with the scheme of `figures`, which are of one kind and
/// scheme; a row without runs if there is no such group.
void add_rows(Table& table, const Setting& setting, const FigureKind& kind,
              const std::vector<const PublishedFigure*>& figures) {
  const std::string& scheme = figures.front()->scheme;
  const std::string text = published_text(figures, kind, setting.network);
  const auto groups = groups_of(setting, scheme);
  for (const ContestantFigures* group : groups) {
    table.add({group->label, kind.title, text, here_text(*group, kind)});
  }
  if (groups.empty()) {
    table.add({scheme, kind.title, text, "-"});
  }
}

}  // namespace

std::optional<TitledTable> beside_published(const Setting& setting, const Published& published) {
  if (!published.cluster.empty() && published.cluster != setting.cluster) {
    return std::nullopt;
  }
  using Align = Table::Align;
  Table table({{"scheme", Align::left}, {"figure", Align::left}, {"published"}, {"here"}});
  for (const std::string& scheme : schemes_of(published)) {
    for (const FigureKind& kind : figure_kinds) {
      const auto figures = published_for(published, scheme, kind);
      if (!figures.empty()) {
        add_rows(table, setting, kind, figures);
      }
    }
  }
  return TitledTable{"Beside the published figures (" + published.source + ")", table};
}

}  // namespace syncopate::cli
