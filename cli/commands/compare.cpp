#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "base/cores.hpp"
#include "base/errors.hpp"
#include "cli/command.hpp"
#include "cli/compare/comparison.hpp"
#include "cli/train_options.hpp"
#include "device/cluster_file.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* comparison_group = "Comparison";
constexpr const char* compare_examples = R"(Examples:
  syncopate compare --schemes ssgd,asgd,esync --cluster clusters/paper.toml --target-accuracy 0.8
  syncopate compare --schemes ssgd,esync,esync:pacing=paper --cluster clusters/mixed.toml
      --learning-rates 0.01,0.02,0.05,0.1 --seeds 5 --virtual-time --out comparisons/mixed

A scheme may have its own options, which override the common ones; a switch has no value.
With several learning rates or batch sizes, each scheme first tries every pair of them, with the
seed before the first one; these runs do not count. It then runs with its best pair. Evaluations
recompute the statistics of BatchNorm, unless --batch-norm is given.
The comparison includes ssgd on all devices. With a cluster file it also includes ssgd-fast and
esync-fast, which use only devices at least half as fast as the fastest one, and the upper bound:
one device as fast as all together. With --prefixes each scheme also trains on the fastest device,
on the two fastest, and so on. The report, with figures, is in the folder of --out.
The same command continues an interrupted comparison. Further schemes, seeds and rates extend the
comparison in the folder of --out.)";

constexpr std::string_view usual_seeds = "3";

std::uint32_t count_of(const CLI::App& app, const std::string& option, std::uint32_t usual) {
  const auto text = given(app, option);
  if (!text) {
    return usual;
  }
  const bool digits = !text->empty() && text->size() < 5 &&
                      std::all_of(text->begin(), text->end(), [](unsigned char character) {
                        return std::isdigit(character) != 0;
                      });
  if (!digits || std::stoul(*text) == 0) {
    throw ConfigError(
        fmt::format("{}: expected a number from 1 to 9999, found '{}'", option, *text));
  }
  return static_cast<std::uint32_t>(std::stoul(*text));
}

bool grid_in_virtual_time(const CLI::App& app, const TrainConfig& common) {
  const bool has_cluster = !common.cluster.empty();
  const std::string world = given(app, "--grid-in").value_or(has_cluster ? "virtual" : "real");
  if (world != "virtual" && world != "real") {
    throw ConfigError(fmt::format("--grid-in: expected virtual or real, found '{}'", world));
  }
  if (world == "virtual" && !has_cluster) {
    throw ConfigError("--grid-in virtual needs a cluster file; name one by --cluster");
  }
  return world == "virtual";
}

std::string folder_of(const CLI::App& app) {
  return given(app, "--out")
      .value_or(fmt::format("comparisons/{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr))));
}

CommonOptions common_of(const CLI::App& app) {
  CommonOptions common{.config = common_config_of(app), .given = given_options(app)};
  if (!common.config.cluster.empty()) {
    common.devices =
        static_cast<std::uint32_t>(read_cluster_file(common.config.cluster).devices.size());
  }
  if (const auto rates = given(app, "--learning-rates")) {
    common.learning_rates = read_rates(*rates);
  } else if (const auto rate = common.config.learning_rate) {
    common.learning_rates = {*rate};
  }
  common.config.learning_rate.reset();
  if (const auto sizes = given(app, "--batch-sizes")) {
    for (const char* const other : {"batch-size", "global-batch"}) {
      if (common.given.contains(other)) {
        throw ConfigError(
            fmt::format("--batch-sizes and --{} exclude each other; give one of them", other));
      }
    }
    common.batch_sizes = read_batch_sizes(*sizes);
  }
  if (!common.given.contains("batch-norm")) {
    common.config.batch_norm = comparisons_batch_norm;
  }
  return common;
}

/// Seeds and repeats are two names of one number.
std::uint32_t seeds_of(const CLI::App& app, std::uint64_t first) {
  const bool both = app.count("--seeds") > 0 && app.count("--repeats") > 0;
  const std::string option = app.count("--repeats") > 0 ? "--repeats" : "--seeds";
  const std::uint32_t seeds = count_of(app, option, 3);
  if (both && seeds != count_of(app, "--seeds", 3)) {
    throw ConfigError("--repeats and --seeds are the same number; give one of them");
  }
  if (first + (seeds - 1) > static_cast<std::uint64_t>(INT64_MAX)) {
    throw ConfigError(fmt::format("{}: expected seeds up to {}, found {} from --seed {} on", option,
                                  INT64_MAX, seeds, first));
  }
  return seeds;
}

/// The schemes of `--schemes`, and the baseline scheme if it is not among them.
std::vector<Contestant> contestants_of(const CLI::App& app, const CommonOptions& common,
                                       bool baselines) {
  const auto schemes = given(app, "--schemes");
  if (!schemes) {
    throw ConfigError("compare needs --schemes NAME,NAME,...");
  }
  std::vector<Contestant> contestants = read_contestants(*schemes, common);
  const std::string baseline(baseline_scheme().name);
  const bool there = std::any_of(contestants.begin(), contestants.end(),
                                 [&](const Contestant& one) { return one.label == baseline; });
  if (baselines && !there) {
    // The common options were checked with the user's own schemes.
    const TrainConfig config = baseline_config(common.config, baseline_scheme());
    contestants.push_back(read_contestants(baseline, {.config = config,
                                                      .given = {},
                                                      .learning_rates = common.learning_rates,
                                                      .batch_sizes = common.batch_sizes,
                                                      .devices = common.devices})
                              .front());
  }
  return contestants;
}

CompareCommand compare_command_of(const CLI::App& app) {
  CompareCommand command{.common = common_of(app), .folder = folder_of(app)};
  const TrainConfig& config = command.common.config;
  const bool baselines = app.count("--no-baselines") == 0;
  command.contestants = contestants_of(app, command.common, baselines);
  command.seeds = seeds_of(app, config.seed);
  command.grid_in_virtual_time = grid_in_virtual_time(app, config);
  command.until_target = app.count("--until-target") > 0;
  if (command.until_target && !config.target_accuracy) {
    throw ConfigError("--until-target needs a --target-accuracy");
  }
  command.with_fast = baselines && !config.cluster.empty();
  command.prefixes = app.count("--prefixes") > 0;
  if (command.prefixes && (config.cluster.empty() || !config.target_accuracy)) {
    throw ConfigError("--prefixes needs a --cluster and a --target-accuracy");
  }
  command.with_limit = !config.cluster.empty() && app.count("--no-limit") == 0;
  command.jobs = count_of(app, "--jobs", std::max(1U, available_cores() / config.threads));
  command.output = output_of(app);
  command.words = fmt::format("{} --out {}", words_of(app, "out"), quoted(command.folder.string()));
  command.version = version_line();
  return command;
}

}  // namespace

Command add_compare(CLI::App& root, const Handlers& handlers) {
  CLI::App* app = root.add_subcommand(
      "compare", "Compare schemes over several seeds, learning rates and batch sizes.");
  add_value(*app, "schemes", "LIST", "schemes, each with its own options: ssgd,esync:pacing=paper")
      ->group(comparison_group);
  add_value(*app, "seeds", "N",
            fmt::format("runs of each scheme, with seeds from --seed on [{}]", usual_seeds))
      ->group(comparison_group);
  add_value(*app, "repeats", "N", "the same as --seeds")->group(comparison_group);
  add_value(*app, "learning-rates", "LIST", "rates to try for each scheme [the scheme's default]")
      ->group(comparison_group);
  add_value(*app, "batch-sizes", "LIST",
            "batch sizes to try for each scheme, with each rate [that of --batch-size, or the part "
            "of the usual global batch]")
      ->group(comparison_group);
  add_value(*app, "grid-in", "WORLD",
            "clock of the runs that try rates and sizes: virtual, real [virtual with a cluster "
            "file]")
      ->group(comparison_group);
  add_switch(*app, "until-target", "end each run at the target accuracy")->group(comparison_group);
  add_switch(*app, "no-limit", "omit the upper bound")->group(comparison_group);
  add_switch(*app, "no-baselines",
             "omit the baselines: ssgd, and with a cluster file ssgd and esync on its fast devices "
             "only")
      ->group(comparison_group);
  add_switch(
      *app, "prefixes",
      "also run each scheme on the fastest device of the cluster file, the two fastest, ...: "
      "the benefit of each device")
      ->group(comparison_group);
  add_value(*app, "jobs", "N", "number of parallel runs in virtual time [number of cores]")
      ->group(comparison_group);
  add_value(*app, "out", "FOLDER",
            "new folder of the results, or one to continue [comparisons/<time>]")
      ->group(comparison_group);
  add_common_options(*app);
  app->footer(compare_examples);
  return {app, [app, &handlers] { return handlers.compare(compare_command_of(*app)); }};
}

}  // namespace syncopate::cli
