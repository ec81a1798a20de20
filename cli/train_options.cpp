#include "cli/train_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "cli/command.hpp"
#include "cli/help_formatter.hpp"
#include "config/option.hpp"
#include "device/cluster_file.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/launcher.hpp"
#include "job/launch/loop_config.hpp"
#include "job/launch/program_environment.hpp"
#include "spec/config_fields.hpp"
#include "spec/config_file.hpp"
#include "spec/job_plan.hpp"

namespace syncopate::cli {
namespace {

/// All values in one line: "mlp, lenet5". Empty for an option that has no list of values.
std::string values_of(const OptionSpec& field) {
  std::string values;
  if (field.choices != nullptr) {
    values = fmt::format("{}", fmt::join(field.choices(), ", "));
  }
  if (field.also != nullptr) {
    values += fmt::format(", {}", field.value);
  }
  return values;
}

/// " [lenet5]"
std::string default_of(const OptionSpec& field) {
  const std::string usual = to_text(field.initial);
  return fmt::format(" [{}]", field.when_unset.empty() ? usual : field.when_unset);
}

CLI::Option* add_option(CLI::App& app, const OptionSpec& field, const std::string& usual) {
  const bool is_switch = field.type == OptionType::flag;
  const std::string name(field.name);
  CLI::Option* option =
      is_switch ? add_switch(app, name, std::string(field.help))->disable_flag_override(false)
                : add_value(app, name, field.choices ? "NAME" : std::string(field.value),
                            fmt::format("{}{}\n{}", field.help, usual, values_of(field)));
  return option->group(std::string(field.group));
}

/// Adds earlier names of options, which the help text does not list.
void add_old_options(CLI::App& app) {
  for (const std::string_view old : old_option_names()) {
    add_value(app, std::string(old), "NAME", "")->group("");
  }
}

const std::string configuration(option_group::configuration);

void add_config_option(CLI::App& app) {
  add_value(app, "config", "FILE", "a TOML file, such as a run's config.toml; options override it")
      ->group(configuration);
}

/// True for a field that a comparison sets for each run.
bool is_of_one_run(const Field& field) {
  return field.name == "scheme" || field.name == "learning-rate" || field.name == "run-dir";
}

/// Sets the options that are given under an earlier name; returns their present names.
std::set<std::string_view> apply_old_options(const CLI::App& app, TrainConfig& config) {
  std::set<std::string_view> names;
  for (const std::string_view old : old_option_names()) {
    const std::string option = fmt::format("--{}", old);
    const auto text = given(app, option);
    if (!text) {
      continue;
    }
    try {
      names.insert(*set_old_option(config, old, *text));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", option, error.what()));
    }
  }
  return names;
}

/// Sets the fields whose options the user gave; returns their names.
std::set<std::string_view> apply_options(const CLI::App& app, TrainConfig& config) {
  std::set<std::string_view> names;
  for (const Field& field : train_fields()) {
    const auto text = given(app, option_of(field));
    if (!text) {
      continue;
    }
    names.insert(field.name);
    set_from_option(field, config, *text);
  }
  names.merge(apply_old_options(app, config));
  return names;
}

TrainConfig config_of_run(const std::filesystem::path& run_dir) {
  const auto file = run_dir / "config.toml";
  if (!is_there(file)) {
    const auto run = run_dir.parent_path().parent_path();
    if (run_dir.extension() == ".safetensors" && is_there(run / "config.toml")) {
      throw ConfigError(
          fmt::format("--resume: {} is a checkpoint; name the folder of its run, which resumes "
                      "from the newest checkpoint: --resume {}",
                      run_dir.string(), run.string()));
    }
    throw ConfigError(
        fmt::format("--resume: {} holds no run: there is no config.toml", run_dir.string()));
  }
  TrainConfig config = read_config(file);
  config.run_dir = run_dir;
  return config;
}

/// Refuses options that change what a resumed run computes. Its length and its outputs may change.
void check_resumable(const TrainConfig& before, const TrainConfig& now) {
  for (const Field& field : train_fields()) {
    if (!field.resumable && comparable_value(field, now) != comparable_value(field, before)) {
      throw ConfigError(fmt::format("{} cannot change when a run is resumed; it was {}",
                                    option_of(field), shown_value(field, before)));
    }
  }
}

}  // namespace

void add_train_options(CLI::App& app) {
  for (const Field& field : train_fields()) {
    add_option(app, field, default_of(field));
  }
  add_old_options(app);
  add_config_option(app);
  add_value(app, "resume", "FOLDER", "continue the run in this folder; options may extend it")
      ->group(configuration);
  add_output_options(app, Says::events);
  add_short_help(app);
}

void add_common_options(CLI::App& app) {
  for (const Field& field : train_fields()) {
    if (!is_of_one_run(field)) {
      const bool own = field.name == "batch-norm";
      add_option(
          app, field,
          own ? fmt::format(" [{}]", name_of_value(comparisons_batch_norm)) : default_of(field));
    }
  }
  add_old_options(app);
  add_config_option(app);
  add_output_options(app, Says::events);
  add_short_help(app);
}

void add_loop_options(CLI::App& app) {
  const auto keep_text = [](const CLI::results_t&) { return true; };
  app.add_option("-n,--workers", keep_text, "number of programs to start, one worker each [1]")
      ->type_name("N")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group(std::string(option_group::workers));
  for (const OptionSpec* const option : loop_options()) {
    add_option(
        app, *option,
        option->name == "run-dir" ? " [runs/<time>-<scheme>-<program>]" : default_of(*option));
  }
  add_output_options(app, Says::events);
}

void add_data_options(CLI::App& app) {
  const auto decides = [](std::string_view name) {
    return name == "scheme" || name == "data" || name == "data-dir" || name == "workers" ||
           name == "cluster" || name == "batch-size" || name == "global-batch" || name == "seed" ||
           name == "shares" || name == "image-size" || name.starts_with("split");
  };
  for (const Field& field : train_fields()) {
    if (decides(field.name)) {
      add_option(app, field, default_of(field));
    }
  }
  add_config_option(app);
}

TrainConfig common_config_of(const CLI::App& app) {
  const auto file = given(app, "--config");
  TrainConfig config = file ? read_config(*file) : TrainConfig{};
  if (apply_options(app, config).contains("split")) {
    expect_one_split(config);
  }
  config.run_dir.clear();
  if (!config.cluster.empty()) {
    config.cluster =
        std::filesystem::absolute(find_cluster_file(config.cluster, installed_clusters()));
  }
  return config;
}

void add_expectations(CLI::App& app) {
  for (const Field& field : train_fields()) {
    add_option(app, field, "");
  }
}

GivenOptions given_options(const CLI::App& app) {
  GivenOptions options;
  TrainConfig checked;
  for (const Field& field : train_fields()) {
    if (const auto text = given(app, option_of(field))) {
      set_from_option(field, checked, *text);
      options[std::string(field.name)] =
          field.name == "cluster" ? find_cluster_file(*text, installed_clusters()).string() : *text;
    }
  }
  return options;
}

GivenOptions given_loop_options(const CLI::App& app) {
  GivenOptions options = given_options(app);
  options.erase("workers");
  for (const OptionSpec* const option : loop_options()) {
    if (const auto text = given(app, fmt::format("--{}", option->name))) {
      options.emplace(option->name, *text);
    }
  }
  check_loop_options(options);
  return options;
}

void add_output_options(CLI::App& app, Says what) {
  const std::string logging(option_group::logging);
  const bool shows_job = what == Says::events;
  add_switch(app, "quiet", shows_job ? "warnings and the final table only" : "warnings only")
      ->group(logging);
  add_switch(app, "verbose", "more messages, including the settings of the numeric libraries")
      ->group(logging);
  if (shows_job) {
    add_switch(app, "json", "events as JSON lines; the last line is the summary")->group(logging);
  }
}

TrainConfig config_of(const CLI::App& app) {
  const auto file = given(app, "--config");
  const auto run_dir = given(app, "--resume");
  if (file && run_dir) {
    throw ConfigError("--config and --resume exclude each other: a run keeps its configuration");
  }
  const TrainConfig base = run_dir ? config_of_run(*run_dir)
                           : file  ? read_config(*file)
                                   : TrainConfig{};
  TrainConfig config = base;
  check_given(config, apply_options(app, config));
  if (run_dir) {
    check_resumable(base, config);
  }
  return config;
}

OutputOptions output_of(const CLI::App& app) {
  const bool quiet = app.count("--quiet") > 0;
  const bool verbose = app.count("--verbose") > 0;
  if (quiet && verbose) {
    throw ConfigError("--quiet and --verbose exclude each other");
  }
  return {.verbosity = quiet     ? log::Verbosity::quiet
                       : verbose ? log::Verbosity::verbose
                                 : log::Verbosity::normal,
          .json = app.get_option_no_throw("--json") != nullptr && app.count("--json") > 0};
}

TrainCommand job_of(const CLI::App& app, const Handlers& handlers) {
  TrainConfig config = config_of(app);
  ConfigFacts facts{.devices = {},
                    .usual_learning_rate = handlers.usual_learning_rate,
                    .time = time_for_a_name()};
  const auto launch = own_launch();
  if (launch) {
    facts.ranks = launch->size;
    // A job that requires a missing MPI module fails later, with a message that names the module.
    // The user has said where ranks meet that do not use MPI.
    const bool meets = !from_environment(coordinator_variable).empty() &&
                       config.transport == TransportKind::automatic;
    facts.mpi = launch->mpi && (requires_mpi(config) ||
                                (!meets && mpi::is_built(*launch->mpi, chosen_mpi_modules())));
  }
  if (!config.cluster.empty()) {
    config.cluster = find_cluster_file(config.cluster, installed_clusters());
    const ClusterFile cluster = read_cluster_file(config.cluster);
    facts.devices = static_cast<std::uint32_t>(cluster.devices.size());
  }
  const bool named_run_dir = !config.run_dir.empty();
  const OutputOptions output = output_of(app);
  config = resolve_config(std::move(config), facts);
  const JobPlan refuses_impossible_steps(config);
  return {.request = {.config = std::move(config),
                      .resumed = app.count("--resume") > 0,
                      .named_run_dir = named_run_dir,
                      .verbosity = output.verbosity,
                      .launch = launch},
          .json = output.json};
}

std::filesystem::path find_cluster_file(const std::filesystem::path& named,
                                        const std::filesystem::path& installed) {
  const auto kept = (installed / named.filename()).replace_extension(".toml");
  for (const auto& candidate : {named, kept}) {
    if (std::filesystem::is_regular_file(file_status_of(candidate))) {
      return candidate;
    }
  }
  throw ConfigError(fmt::format("--cluster: there is no file {}, and none of that name in {}",
                                named.string(), installed.string()));
}

}  // namespace syncopate::cli
