#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/view/table.hpp"
#include "job/launch/exit_status.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate::cli {
namespace {

void print_json() {
  auto schemes = nlohmann::ordered_json::array();
  for (const SchemeSpec* const scheme : all_schemes()) {
    schemes.push_back(
        {{"name", scheme->name}, {"rule", scheme->formula}, {"source", scheme->source}});
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"schemes", schemes}}.dump());
}

void print_table() {
  Table table({{"scheme", Table::Align::left},
               {"rule", Table::Align::left},
               {"source", Table::Align::left}});
  for (const SchemeSpec* const scheme : all_schemes()) {
    table.add(
        {std::string(scheme->name), std::string(scheme->formula), std::string(scheme->source)});
  }
  fmt::print("{}\n", fmt::join(table.lines(), "\n"));
}

}  // namespace

Command add_schemes(CLI::App& root) {
  CLI::App* app = root.add_subcommand("schemes", "List the distributed training schemes.");
  add_switch(*app, "json", "print one JSON object");
  return {app, [app] {
            app->count("--json") > 0 ? print_json() : print_table();
            return exit_status::success;
          }};
}

}  // namespace syncopate::cli
