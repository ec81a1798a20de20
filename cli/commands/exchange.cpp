#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "cli/command.hpp"
#include "config/option.hpp"
#include "job/launch/exit_status.hpp"
#include "report/esync_logs.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* export_examples = R"(Example:
  syncopate export esync-logs runs/mine --out logs/resnet18-v1/esync

Writes iter-N.txt for each round of each worker, in a folder for each worker below its host, as
ESync's summary.py reads them.)";

constexpr const char* import_examples = R"(Example:
  syncopate import esync-logs logs/resnet18-v1/esync --out runs/esync-paper

  syncopate import esync-logs logs/cloud --scheme asgd --network resnet18-v1 --cluster cloud \
      --out runs/asgd-cloud

Makes a run folder, which other commands read, from the iter-N.txt files of ESync's workers. The
logs of ESync's own tools do not name network, data and cluster; those of an export do.)";

/// Checks the two positional arguments, the format and the folder to read; returns the folder.
std::string source_of(const CLI::App& app, const std::string& expected) {
  const std::string format = given(app, "format").value_or("");
  if (format != "esync-logs") {
    throw ConfigError(
        fmt::format("expected a format, esync-logs, after {}; found '{}'", app.get_name(), format));
  }
  const auto source = given(app, "source");
  if (!source || !std::filesystem::is_directory(file_status_of(*source))) {
    throw ConfigError(
        fmt::format("expected {}, found no folder '{}'", expected, source.value_or("")));
  }
  return *source;
}

std::string out_of(const CLI::App& app) {
  const auto out = given(app, "--out");
  if (!out) {
    throw ConfigError("expected a folder to write: --out FOLDER");
  }
  return *out;
}

/// Errors: ConfigError if a file of the run cannot hold the name.
std::optional<std::string> name_of(const CLI::App& app, const std::string& option) {
  const auto name = given(app, option);
  if (name) {
    check_text(*name);
  }
  return name;
}

int print_result(const CLI::App& app, const std::string& out, const EsyncLogs& done) {
  if (app.count("--json") > 0) {
    fmt::print("{}\n",
               json_text({{"out", out}, {"workers", done.workers}, {"rounds", done.rounds}}));
  } else {
    fmt::print("{}: {} rounds of {} workers\n", out, done.rounds, done.workers);
  }
  return exit_status::success;
}

CLI::App* add_exchange(CLI::App& root, const char* name, const char* help, const char* examples) {
  CLI::App* app = root.add_subcommand(name, help);
  const auto takes_all = [](const CLI::results_t&) { return true; };
  app->add_option("format", takes_all, "esync-logs");
  app->add_option("source", takes_all, "folder to read")->type_name("FOLDER");
  add_value(*app, "out", "FOLDER", "folder to write");
  add_switch(*app, "json", "print one JSON object");
  app->footer(examples);
  return app;
}

}  // namespace

Command add_export(CLI::App& root) {
  CLI::App* app =
      add_exchange(root, "export", "Write a run as the logs of another tool.", export_examples);
  return {app, [app] {
            const RunFolder run(source_of(*app, "the folder of a run"));
            const std::string out = out_of(*app);
            return print_result(*app, out, export_esync_logs(run, out));
          }};
}

Command add_import(CLI::App& root) {
  CLI::App* app = add_exchange(root, "import", "Make a run folder from the logs of another tool.",
                               import_examples);
  add_value(*app, "scheme", "NAME", "scheme of the run [as the logs say]");
  add_value(*app, "network", "NAME", "network that was trained [as the logs say]");
  add_value(*app, "data", "NAME", "data it was trained on [as the logs say]");
  add_value(*app, "cluster", "NAME", "name of the cluster [as the logs say]");
  return {app, [app] {
            const std::string logs = source_of(*app, "the folder of the logs");
            const std::string out = out_of(*app);
            const EsyncOrigin origin{.scheme = name_of(*app, "--scheme"),
                                     .network = name_of(*app, "--network"),
                                     .data = name_of(*app, "--data"),
                                     .cluster = name_of(*app, "--cluster")};
            return print_result(*app, out, import_esync_logs(logs, RunFolder(out), origin));
          }};
}

}  // namespace syncopate::cli
