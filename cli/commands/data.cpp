#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "cli/command.hpp"
#include "cli/option_readers.hpp"
#include "cli/train_options.hpp"
#include "cli/view/table.hpp"
#include "data/cifar.hpp"
#include "device/cluster_file.hpp"
#include "job/launch/exit_status.hpp"
#include "spec/job_plan.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* order_group = "Data order";
constexpr const char* data_examples = R"(Examples:
  syncopate data --data fashion-mnist
  syncopate data --data ./flowers/ --image-size 64
  syncopate data --data cifar10 --data-dir cifar-10-batches-bin --workers 4 --split dirichlet:0.3
  syncopate data --order --workers 4 --rank 1 --epoch 0 --batch-size 64
  syncopate data --order --config runs/mine/config.toml --rank 2 --epoch 3 --json

With more than one worker the part of each is printed, too. With --order each line is a mini-batch:
the indices of its samples in the training set, from 0, in the order in which the worker trains on
them. See docs/guides/data.md and docs/reference/data-order.md.)";

std::uint64_t place_of(const CLI::App& app, const std::string& option) {
  constexpr std::uint64_t most = 1'000'000;
  const auto text = given(app, option);
  return text ? value_of(option, [&] { return number_of(*text, 0, most); }) : 0;
}

/// The plan of the job, from the options that determine the order of its data.
TrainConfig job_of(const CLI::App& app) {
  TrainConfig config = common_config_of(app);
  if (config.workers == 0 && !config.cluster.empty()) {
    config.workers = static_cast<std::uint32_t>(read_cluster_file(config.cluster).devices.size());
  }
  config.workers = std::max(config.workers, 1U);
  check_shares(config);
  return config;
}

/// One worker's mini-batches of one epoch.
struct Order {
  std::uint32_t rank = 0;
  Epoch epoch;
  std::vector<std::vector<std::uint32_t>> batches;
};

Order order_of(const CLI::App& app, const JobPlan& plan, const Dataset& dataset) {
  const std::uint64_t rank = place_of(app, "--rank");
  const std::uint32_t workers = plan.config().workers;
  if (rank >= workers) {
    throw ConfigError(
        fmt::format("--rank: expected a whole number below {} workers, found {}", workers, rank));
  }
  Order order{.rank = static_cast<std::uint32_t>(rank),
              .epoch = Epoch{place_of(app, "--epoch")},
              .batches = {}};
  BatchFeed feed = plan.feed(dataset.train, Rank{order.rank});
  for (std::uint64_t step = 0; step < feed.steps_per_epoch(); ++step) {
    const auto samples = feed.batch({.epoch = order.epoch, .step = step});
    order.batches.emplace_back(samples.begin(), samples.end());
  }
  return order;
}

void print_order(const CLI::App& app, const JobPlan& plan, const Dataset& dataset) {
  const Order order = order_of(app, plan, dataset);
  if (app.count("--json") == 0) {
    for (const auto& batch : order.batches) {
      fmt::print("{}\n", fmt::join(batch, " "));
    }
    return;
  }
  const Json json{
      {"data", plan.config().data},       {"seed", plan.config().seed},
      {"workers", plan.config().workers}, {"rank", order.rank},
      {"epoch", order.epoch.value},       {"batch_size", plan.batch_sizes()[order.rank]},
      {"batches", order.batches}};
  fmt::print("{}\n", json_text(json));
}

/// The number of samples of each class, by label.
using ClassCounts = std::vector<std::uint64_t>;

ClassCounts count_classes(const Dataset& dataset, const ImageSet& set) {
  ClassCounts counts(dataset.classes);
  for (const Label label : set.labels) {
    ++counts.at(label);
  }
  return counts;
}

/// The samples of each worker by class, by rank.
std::vector<ClassCounts> count_parts(const JobPlan& plan, const Dataset& dataset) {
  const Partition partition = plan.partition(dataset.train);
  std::vector<ClassCounts> parts(partition.workers(), ClassCounts(dataset.classes));
  for (std::uint32_t rank = 0; rank < partition.workers(); ++rank) {
    for (const std::uint32_t sample : partition.part(Rank{rank}, Epoch{0})) {
      ++parts[rank].at(dataset.train.labels[sample]);
    }
  }
  return parts;
}

std::uint64_t sum_of(const ClassCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

/// A number for one channel, a list for several.
Json by_channel(const std::vector<float>& values) {
  return values.size() == 1 ? Json(values.front()) : Json(values);
}

std::string shown_by_channel(const std::vector<float>& values) {
  return fmt::format("{:.4f}", fmt::join(values, ", "));
}

/// The dataset's files with their checksums, if nothing else checks these files; otherwise empty.
std::vector<DataFile> files_of(const TrainConfig& config) {
  const auto names = cifar_names();
  return std::ranges::find(names, config.data) == names.end()
             ? std::vector<DataFile>{}
             : cifar_files(config.data, config.data_dir);
}

std::string hexadecimal(std::uint32_t sum) {
  return fmt::format("{:08x}", sum);
}

Json facts_of(const JobPlan& plan, const Dataset& dataset) {
  const SampleShape& shape = dataset.train.shape;
  Json json{{"data", dataset.name},
            {"training_samples", dataset.train.samples()},
            {"test_samples", dataset.test.samples()},
            {"classes", dataset.classes},
            {"shape", {shape.channels, shape.height, shape.width}},
            {"mean", by_channel(dataset.mean)},
            {"standard_deviation", by_channel(dataset.standard_deviation)},
            {"weighted", !dataset.train.weights.empty()},
            {"training_samples_by_class", count_classes(dataset, dataset.train)},
            {"test_samples_by_class", count_classes(dataset, dataset.test)}};
  if (!dataset.class_names.empty()) {
    json["class_names"] = dataset.class_names;
  }
  json["files_passed_over"] = dataset.passed_over;
  for (const DataFile& file : files_of(plan.config())) {
    json["files"].push_back(
        {{"path", file.path.string()}, {"bytes", file.bytes}, {"crc32", hexadecimal(file.crc32)}});
  }
  if (plan.config().workers > 1) {
    json["parts"] = Json::array();
    for (const ClassCounts& counts : count_parts(plan, dataset)) {
      json["parts"].push_back({{"samples", sum_of(counts)}, {"samples_by_class", counts}});
    }
  }
  return json;
}

Table facts_table(const Dataset& dataset) {
  const SampleShape& shape = dataset.train.shape;
  Table table({{"data", Table::Align::left},
               {"training samples"},
               {"test samples"},
               {"classes"},
               {"shape"},
               {"mean"},
               {"deviation"}});
  table.add({dataset.name, grouped(dataset.train.samples()), grouped(dataset.test.samples()),
             fmt::format("{}", dataset.classes),
             fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width),
             shown_by_channel(dataset.mean), shown_by_channel(dataset.standard_deviation)});
  return table;
}

Table classes_table(const Dataset& dataset) {
  const bool named = !dataset.class_names.empty();
  std::vector<Table::Column> columns{{"class"}, {"training samples"}, {"test samples"}};
  if (named) {
    columns.push_back({"name", Table::Align::left});
  }
  Table table(columns);
  const ClassCounts train = count_classes(dataset, dataset.train);
  const ClassCounts test = count_classes(dataset, dataset.test);
  for (std::uint32_t label = 0; label < dataset.classes; ++label) {
    std::vector<std::string> cells{fmt::format("{}", label), grouped(train[label]),
                                   grouped(test[label])};
    if (named) {
      cells.push_back(printable(dataset.class_names[label]));
    }
    table.add(std::move(cells));
  }
  return table;
}

/// One row per worker, with a column per class if there are few classes.
Table parts_table(const JobPlan& plan, const Dataset& dataset) {
  constexpr std::uint32_t most_columns = 10;
  const bool by_class = dataset.classes <= most_columns;
  std::vector<Table::Column> columns{{"worker"}, {"samples"}, {"share"}, {"classes"}};
  for (std::uint32_t label = 0; by_class && label < dataset.classes; ++label) {
    columns.push_back({fmt::format("class {}", label)});
  }
  Table table(columns);
  const std::vector<ClassCounts> parts = count_parts(plan, dataset);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const ClassCounts& counts = parts[rank];
    const auto share =
        static_cast<double>(sum_of(counts)) / static_cast<double>(dataset.train.samples());
    std::vector<std::string> cells{
        fmt::format("{}", rank), grouped(sum_of(counts)), fmt::format("{:.1f} %", 100 * share),
        fmt::format("{}", counts.size() - std::ranges::count(counts, 0U))};
    for (std::size_t label = 0; by_class && label < counts.size(); ++label) {
      cells.push_back(grouped(counts[label]));
    }
    table.add(std::move(cells));
  }
  return table;
}

Table files_table(const std::vector<DataFile>& files) {
  Table table({{"file", Table::Align::left}, {"bytes"}, {"CRC-32"}});
  for (const DataFile& file : files) {
    table.add(
        {printable(file.path.filename().string()), grouped(file.bytes), hexadecimal(file.crc32)});
  }
  return table;
}

void print_files(const JobPlan& plan, const Dataset& dataset) {
  if (const auto files = files_of(plan.config()); !files.empty()) {
    fmt::print("\n{}\n", fmt::join(files_table(files).lines(), "\n"));
  }
  if (dataset.passed_over > 0) {
    fmt::print("\npassed over (hidden files, Thumbs.db, desktop.ini): {}\n", dataset.passed_over);
  }
}

void print_facts(const CLI::App& app, const JobPlan& plan, const Dataset& dataset) {
  for (const char* option : {"--rank", "--epoch"}) {
    if (app.count(option) > 0) {
      throw ConfigError(fmt::format("{} has no effect without --order", option));
    }
  }
  if (app.count("--json") > 0) {
    fmt::print("{}\n", json_text(facts_of(plan, dataset)));
    return;
  }
  fmt::print("{}\n\n{}\n", fmt::join(facts_table(dataset).lines(), "\n"),
             fmt::join(classes_table(dataset).lines(), "\n"));
  print_files(plan, dataset);
  if (plan.config().workers > 1) {
    fmt::print("\nPart of each worker, split {}\n{}\n", to_string(split_of(plan.config())),
               fmt::join(parts_table(plan, dataset).lines(), "\n"));
  }
  if (!dataset.train.weights.empty()) {
    fmt::print("\nTraining samples have weights, of {:g} to {:g}.\n",
               std::ranges::min(dataset.train.weights), std::ranges::max(dataset.train.weights));
  }
}

int print_data(const CLI::App& app) {
  const JobPlan plan(job_of(app));
  const Dataset dataset = load_data(plan.config());
  if (app.count("--order") > 0) {
    print_order(app, plan, dataset);
  } else {
    print_facts(app, plan, dataset);
  }
  return exit_status::success;
}

}  // namespace

Command add_data(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "data", "Describe a dataset, or print the order in which a worker trains on its samples.");
  add_switch(*app, "order", "print the mini-batches of one worker in one epoch")
      ->group(order_group);
  add_value(*app, "rank", "N", "rank of the worker [0]")->group(order_group);
  add_value(*app, "epoch", "N", "number of the epoch [0]")->group(order_group);
  add_switch(*app, "json", "print one JSON object")->group(order_group);
  add_data_options(*app);
  app->footer(data_examples);
  return {app, [app] { return print_data(*app); }};
}

}  // namespace syncopate::cli
