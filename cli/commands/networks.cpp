#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/errors.hpp"
#include "cli/command.hpp"
#include "cli/view/table.hpp"
#include "config/text.hpp"
#include "job/launch/exit_status.hpp"

namespace syncopate::cli {
namespace {

using torch_backend::NetworkFacts;

constexpr std::uint32_t most = 100'000;

std::uint32_t size_of(const CLI::App& app, const std::string& option, std::uint32_t usual) {
  const auto text = given(app, option);
  if (!text) {
    return usual;
  }
  const auto size = number_in<std::uint32_t>(*text);
  if (!size || *size < 1 || *size > most) {
    throw ConfigError(
        fmt::format("{}: expected a whole number from 1 to {}, found '{}'", option, most, *text));
  }
  return *size;
}

NetworksCommand networks_command_of(const CLI::App& app) {
  return {.input = {.channels = size_of(app, "--channels", 1),
                    .height = size_of(app, "--height", 0),
                    .width = size_of(app, "--width", 0)},
          .classes = size_of(app, "--classes", 10)};
}

/// The figures of a network that cannot take the images are null.
nlohmann::ordered_json json_of(const NetworkFacts& network) {
  nlohmann::ordered_json json{{"name", network.name},
                              {"parameters", network.parameters},
                              {"buffers", network.buffers},
                              {"multiply_adds", network.multiply_adds},
                              {"channels", network.input.channels},
                              {"height", network.input.height},
                              {"width", network.input.width},
                              {"classes", network.classes},
                              {"smallest_side", network.smallest_side}};
  if (!network.refusal.empty()) {
    json["parameters"] = json["buffers"] = json["multiply_adds"] = nullptr;
    json["refusal"] = network.refusal;
  }
  return json;
}

void print_json(const std::vector<NetworkFacts>& networks) {
  auto list = nlohmann::ordered_json::array();
  for (const NetworkFacts& network : networks) {
    list.push_back(json_of(network));
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"networks", list}}.dump());
}

void print_table(const std::vector<NetworkFacts>& networks) {
  Table table({{"network", Table::Align::left},
               {"size"},
               {"parameters"},
               {"buffers"},
               {"multiply-adds"},
               {"description", Table::Align::left}});
  for (const NetworkFacts& network : networks) {
    const std::string size = fmt::format("{}x{}", network.input.height, network.input.width);
    if (!network.refusal.empty()) {
      table.add({network.name, size, "-", "-", "-",
                 fmt::format("takes images of {0}x{0} or more", network.smallest_side)});
      continue;
    }
    table.add({network.name, size, grouped(network.parameters), grouped(network.buffers),
               grouped(network.multiply_adds), network.summary});
  }
  fmt::print("{}\n", fmt::join(table.lines(), "\n"));
}

}  // namespace

Command add_networks(CLI::App& root, const Handlers& handlers) {
  CLI::App* app = root.add_subcommand("networks", "List the networks and their sizes.");
  add_value(*app, "channels", "N", "channels of a sample [1]");
  add_value(*app, "height", "N", "height of a sample [the width, or each network's default]");
  add_value(*app, "width", "N", "width of a sample [the height, or each network's default]");
  add_value(*app, "classes", "N", "classes of the data [10]");
  add_switch(*app, "json", "print one JSON object");
  app->footer("Example:\n  syncopate networks --channels 3 --height 32 --width 32 --classes 100");
  return {app, [app, &handlers] {
            const auto networks = handlers.networks(networks_command_of(*app));
            app->count("--json") > 0 ? print_json(networks) : print_table(networks);
            return exit_status::success;
          }};
}

}  // namespace syncopate::cli
