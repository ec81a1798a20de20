#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/build_facts.hpp"
#include "cli/command.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/launcher.hpp"

namespace syncopate::cli {

namespace {

/// Returns libtorch's version; empty in an installation without `syncopate-torch`, such as pip's.
std::string_view libtorch_version() {
  return has_torch_program() ? build_facts.libtorch : std::string_view();
}

}  // namespace

std::string version_line() {
  const std::string_view libtorch = libtorch_version();
  return fmt::format("syncopate {}, {}", build_facts.version,
                     libtorch.empty() ? "without libtorch" : fmt::format("libtorch {}", libtorch));
}

Command add_version(CLI::App& root) {
  CLI::App* app = root.add_subcommand("version", "Print the version.");
  add_switch(*app, "json", "print one JSON object, with libtorch, compiler and build type");
  return {app, [app] {
            const nlohmann::ordered_json facts{{"version", build_facts.version},
                                               {"libtorch", libtorch_version()},
                                               {"compiler", __VERSION__},
                                               {"build", build_facts.build_type}};
            fmt::print("{}\n", app->count("--json") > 0 ? facts.dump() : version_line());
            return exit_status::success;
          }};
}

}  // namespace syncopate::cli
