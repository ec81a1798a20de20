#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "cli/bench/bench_command.hpp"
#include "cli/bench/sizes.hpp"
#include "cli/command.hpp"
#include "cli/option_readers.hpp"
#include "collective/reducer.hpp"
#include "config/option_values.hpp"
#include "config/text.hpp"
#include "spec/networks.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* bench_examples = R"(Examples:
  syncopate bench allreduce --ranks 4 --bytes 1KB,44.7MB
  syncopate bench push-pull --workers 4 --json
  syncopate bench step --network resnet18-v1 --threads 2
  mpirun -n 2 syncopate bench allreduce --transport mpi --aggregate auto,mpi

allreduce: reduction of vectors over ranks.       push-pull: exchanges with parameter servers.
latency: messages between two processes.          kernels: additions and update rules, on one core.
step: a training step of one replica.             codecs: the codecs of --compress, on one core.)";

/// The options of every benchmark.
constexpr std::array<std::string_view, 4> common{"seconds", "rounds", "json", "markdown"};

/// The earlier name of `--aggregate`.
constexpr const char* old_aggregate = "algorithm";

struct Kind {
  std::string_view name;
  std::string_view bytes;               ///< the default sizes
  std::size_t unit;                     ///< of bytes
  std::vector<std::string_view> takes;  ///< its own options
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"allreduce",
       "1KB,10KB,100KB,1MB,10MB,44.7MB,100MB",
       sizeof(float),
       {"transport", "aggregate", "ranks", "bytes"}},
      {"push-pull", "44701480", sizeof(float), {"transport", "servers", "workers", "bytes"}},
      {"latency", "64,1KB,64KiB,1MB,44.7MB", 1, {"transport", "bytes"}},
      {"kernels", "44701480", sizeof(float), {"bytes"}},
      {"codecs", "44701480", sizeof(float), {"bytes"}},
      {"step", "", 1, {"network", "batch-size", "image-size", "precision", "threads"}}};
  return all;
}

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds()) {
    names.push_back(kind.name);
  }
  return names;
}

const Kind& kind_of(const CLI::App& app) {
  const auto name = given(app, "benchmark");
  const auto found = std::find_if(kinds().begin(), kinds().end(),
                                  [&](const Kind& kind) { return kind.name == name; });
  if (found == kinds().end()) {
    throw ConfigError(fmt::format("bench: expected one of {}, found '{}'{}",
                                  fmt::join(kind_names(), ", "), name.value_or(""),
                                  suggestion(name.value_or(""), kind_names())));
  }
  return *found;
}

void check_options(const CLI::App& app, const Kind& kind) {
  const auto takes = [&](std::string_view option) {
    option = option == old_aggregate ? "aggregate" : option;
    return std::find(common.begin(), common.end(), option) != common.end() ||
           std::find(kind.takes.begin(), kind.takes.end(), option) != kind.takes.end();
  };
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && !option->get_positional() && !takes(option->get_lnames().front())) {
      throw ConfigError(fmt::format("bench {} has no option --{}; its own options are --{}",
                                    kind.name, option->get_lnames().front(),
                                    fmt::join(kind.takes, ", --")));
    }
  }
}

std::uint32_t count_of(const CLI::App& app, const std::string& option, std::uint32_t least,
                       std::uint32_t usual) {
  constexpr std::uint64_t most = 64;
  const auto text = given(app, option);
  return text ? static_cast<std::uint32_t>(
                    value_of(option, [&] { return number_of(*text, least, most); }))
              : usual;
}

std::vector<std::string> reducers_of(const std::string& list) {
  const auto words = words_of_list(list);
  for (const std::string& word : words) {
    choice_of(word, own_reducer_names());
  }
  return words;
}

/// The option of the reducers, under the name that the user typed.
std::string aggregate_option(const CLI::App& app) {
  const std::string old = fmt::format("--{}", old_aggregate);
  if (!given(app, old)) {
    return "--aggregate";
  }
  log::warn("{} is now --aggregate", old);
  return old;
}

Effort effort_of(const CLI::App& app) {
  Effort effort;
  if (const auto text = given(app, "--seconds")) {
    effort.seconds = value_of("--seconds", [&] { return seconds_in(*text); });
  }
  if (const auto text = given(app, "--rounds")) {
    effort.rounds = value_of("--rounds", [&] { return number_of(*text, 1, 100'000); });
  }
  return effort;
}

Form form_of(const CLI::App& app) {
  const bool json = app.count("--json") > 0;
  const bool markdown = app.count("--markdown") > 0;
  if (json && markdown) {
    throw ConfigError("--json and --markdown exclude each other");
  }
  return json ? Form::json : markdown ? Form::markdown : Form::text;
}

BenchCommand bench_command_of(const CLI::App& app) {
  const Kind& kind = kind_of(app);
  check_options(app, kind);
  BenchCommand command{.benchmark = std::string(kind.name)};
  command.effort = effort_of(app);
  command.form = form_of(app);
  if (const auto name = given(app, "--transport")) {
    command.transport = value_of("--transport", [&] { return choice_of(*name, bench_transports); });
  }
  const std::string option = aggregate_option(app);
  if (const auto list = given(app, option)) {
    command.reducers = value_of(option, [&] { return reducers_of(*list); });
  }
  command.ranks = count_of(app, "--ranks", 2, command.ranks);
  command.servers = count_of(app, "--servers", 1, command.servers);
  command.workers = count_of(app, "--workers", 1, command.workers);
  command.threads = count_of(app, "--threads", 1, command.threads);
  if (const auto text = given(app, "--batch-size")) {
    command.batch_size = static_cast<std::uint32_t>(
        value_of("--batch-size", [&] { return number_of(*text, 1, 65'536); }));
  }
  if (const auto name = given(app, "--network")) {
    command.network = value_of("--network", [&] { return choice_of(*name, network_names()); });
  }
  if (const auto text = given(app, "--image-size")) {
    command.image_size = static_cast<std::uint32_t>(
        value_of("--image-size", [&] { return number_of(*text, 1, 4096); }));
  }
  if (const auto name = given(app, "--precision")) {
    const auto choices = OptionTraits<Precision>::choices();
    command.precision = value_of("--precision", [&] {
      return OptionTraits<Precision>::read(OptionValue(choice_of(*name, choices)));
    });
  }
  const auto sizes = given(app, "--bytes").value_or(std::string(kind.bytes));
  if (!sizes.empty()) {
    command.bytes = value_of("--bytes", [&] { return read_sizes(sizes, kind.unit); });
  }
  return command;
}

}  // namespace

Command add_bench(CLI::App& root, const Handlers& handlers) {
  CLI::App* app = root.add_subcommand(
      "bench", "Measure communication, kernels and training steps on this machine.");
  app->add_option(
      "benchmark", [](const CLI::results_t&) { return true; },
      fmt::format("{}", fmt::join(kind_names(), ", ")));
  const auto add = [&](const char* name, const char* value, const std::string& help) {
    add_value(*app, name, value, help)->group("Measurement");
  };
  add("transport", "NAME",
      fmt::format("{} [{}]", fmt::join(bench_transports, ", "), bench_transports.front()));
  add("bytes", "LIST", "sizes, such as 1KB,44.7MB,100MiB [by benchmark]");
  add_value(*app, old_aggregate, "LIST", "")->group("");
  add("aggregate", "LIST",
      fmt::format("allreduce: {} [{}]", fmt::join(own_reducer_names(), ", "),
                  own_reducer_names().front()));
  add("ranks", "N", "allreduce: number of ranks [2]");
  add("workers", "N", "push-pull: number of workers [2]");
  add("servers", "N", "push-pull: number of shards, one process each [1]");
  add("network", "NAME", "step: the model, see syncopate networks [lenet5]");
  add("batch-size", "N", "step: samples per step [64]");
  add("image-size", "N", "step: side of the images [28, or the least that the network takes]");
  add("precision", "NAME", "step: number format of the forward pass: float32, bf16 [float32]");
  add("threads", "N", "step: CPU threads [1]");
  add("seconds", "S", "time of each measurement [0.5]");
  add("rounds", "N", "rounds of each measurement, instead of --seconds");
  add_switch(*app, "json", "print one JSON object");
  add_switch(*app, "markdown", "print a Markdown table");
  app->footer(bench_examples);
  return {app, [app, &handlers] { return handlers.bench(bench_command_of(*app)); }};
}

}  // namespace syncopate::cli
