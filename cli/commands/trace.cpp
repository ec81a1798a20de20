#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "cli/command.hpp"
#include "job/launch/exit_status.hpp"
#include "report/trace_merge.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* trace_examples = R"(Example:
  syncopate trace runs/mine

A job writes its trace when it ends. This command writes the trace of a job that still runs or has
crashed. Run it again after you copy the folder `spans` of a worker on another host into the folder
of the run. Open the trace in https://ui.perfetto.dev or chrome://tracing.)";

/// Errors: ConfigError if the folder does not exist.
RunFolder run_folder_of(const std::string& path) {
  if (path.empty()) {
    throw ConfigError("expected the folder of a run: syncopate trace RUN");
  }
  if (!std::filesystem::is_directory(file_status_of(path))) {
    throw ConfigError(fmt::format("expected the folder of a run, found no folder {}", path));
  }
  return RunFolder(path);
}

int write_trace(const CLI::App& app) {
  const RunFolder folder = run_folder_of(given(app, "run").value_or(""));
  const MergedTrace merged = merge_trace(folder);
  if (app.count("--json") > 0) {
    fmt::print("{}\n", json_text({{"trace", folder.trace().string()},
                                  {"processes", merged.processes},
                                  {"events", merged.events}}));
  } else {
    fmt::print("{}: {} events of {} processes\n", folder.trace().string(), merged.events,
               merged.processes);
  }
  return exit_status::success;
}

}  // namespace

Command add_trace(CLI::App& root) {
  CLI::App* app = root.add_subcommand("trace", "Write the trace of a run, also of a crashed one.");
  app->add_option(
         "run", [](const CLI::results_t&) { return true; }, "folder of the run")
      ->type_name("FOLDER");
  add_switch(*app, "json", "print one JSON object");
  app->footer(trace_examples);
  return {app, [app] { return write_trace(*app); }};
}

}  // namespace syncopate::cli
