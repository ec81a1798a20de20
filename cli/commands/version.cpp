#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "job/launch/exit_status.hpp"

namespace syncopate::cli {
namespace {

/// Empty in a program that was built without libtorch.
constexpr std::string_view libtorch = SYNCOPATE_LIBTORCH;

}  // namespace

std::string version_line() {
  return fmt::format("syncopate {}, {}", SYNCOPATE_VERSION,
                     libtorch.empty() ? "without libtorch" : "libtorch " SYNCOPATE_LIBTORCH);
}

Command add_version(CLI::App& root) {
  CLI::App* app = root.add_subcommand("version", "Print the version.");
  add_switch(*app, "json", "print one JSON object, with libtorch, compiler and build type");
  return {app, [app] {
            const nlohmann::ordered_json facts{{"version", SYNCOPATE_VERSION},
                                               {"libtorch", libtorch},
                                               {"compiler", __VERSION__},
                                               {"build", SYNCOPATE_BUILD_TYPE}};
            fmt::print("{}\n", app->count("--json") > 0 ? facts.dump() : version_line());
            return exit_status::success;
          }};
}

}  // namespace syncopate::cli
