#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/errors.hpp"
#include "cli/command.hpp"
#include "cli/train_options.hpp"
#include "cli/view/table.hpp"
#include "config/text.hpp"
#include "device/cluster_file.hpp"
#include "job/launch/exit_status.hpp"
#include "job/spec/job_plan.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* order_group = "Data order";
constexpr const char* data_examples = R"(Examples:
  syncopate data --data fashion-mnist
  syncopate data --order --workers 4 --rank 1 --epoch 0 --batch-size 64
  syncopate data --order --config runs/mine/config.toml --rank 2 --epoch 3 --json

With --order each line is a mini-batch: the indices of its samples in the training set, from 0,
in the order in which the worker trains on them. See docs/data-order.md.)";

std::uint64_t number_of(const CLI::App& app, const std::string& option) {
  const auto text = given(app, option);
  if (!text) {
    return 0;
  }
  const auto number = number_in<std::uint64_t>(*text);
  constexpr std::uint64_t most = 1'000'000;
  if (!number || *number > most) {
    throw ConfigError(
        fmt::format("{}: expected a whole number from 0 to {}, found '{}'", option, most, *text));
  }
  return *number;
}

/// The plan of the job, from the options that determine the order of its data.
TrainConfig job_of(const CLI::App& app) {
  TrainConfig config = common_config_of(app);
  if (config.workers == 0 && !config.cluster.empty()) {
    config.workers = static_cast<std::uint32_t>(read_cluster_file(config.cluster).devices.size());
  }
  config.workers = std::max(config.workers, 1U);
  return config;
}

/// One worker's mini-batches of one epoch.
struct Order {
  std::uint32_t rank = 0;
  Epoch epoch;
  std::vector<std::vector<std::uint32_t>> batches;
};

Order order_of(const CLI::App& app, const JobPlan& plan, const Dataset& dataset) {
  const std::uint64_t rank = number_of(app, "--rank");
  const std::uint32_t workers = plan.config().workers;
  if (rank >= workers) {
    throw ConfigError(
        fmt::format("--rank: expected a whole number below {} workers, found {}", workers, rank));
  }
  Order order{.rank = static_cast<std::uint32_t>(rank),
              .epoch = Epoch{number_of(app, "--epoch")},
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
  fmt::print("{}\n", json.dump());
}

void print_facts(const CLI::App& app, const Dataset& dataset) {
  for (const char* option : {"--rank", "--epoch"}) {
    if (app.count(option) > 0) {
      throw ConfigError(fmt::format("{} has no effect without --order", option));
    }
  }
  const SampleShape& shape = dataset.train.shape;
  if (app.count("--json") > 0) {
    const Json json{{"data", dataset.name},
                    {"training_samples", dataset.train.samples()},
                    {"test_samples", dataset.test.samples()},
                    {"classes", dataset.classes},
                    {"shape", {shape.channels, shape.height, shape.width}},
                    {"mean", dataset.mean},
                    {"standard_deviation", dataset.standard_deviation}};
    fmt::print("{}\n", json.dump());
    return;
  }
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
             fmt::format("{:.4f}", dataset.mean),
             fmt::format("{:.4f}", dataset.standard_deviation)});
  fmt::print("{}\n", fmt::join(table.lines(), "\n"));
}

int print_data(const CLI::App& app) {
  const JobPlan plan(job_of(app));
  const Dataset dataset = load_dataset(plan.config().data, plan.config().data_dir);
  if (app.count("--order") > 0) {
    print_order(app, plan, dataset);
  } else {
    print_facts(app, dataset);
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
