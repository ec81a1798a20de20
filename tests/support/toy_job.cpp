#include "tests/support/toy_job.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <system_error>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate {

namespace fs = std::filesystem;

namespace {

/// The network of `LogisticReplica`, which no configuration file can name.
constexpr NetworkSpec toy_network{.name = "toy"};

/// Removes the folders of a process's tests at the end of the process.
struct Made {
  ~Made() {
    for (const fs::path& folder : folders) {
      std::error_code ignored;  // files of another user stay
      fs::remove_all(folder, ignored);
    }
  }
  std::vector<fs::path> folders;
};

}  // namespace

fs::path fresh_folder(const std::string& name) {
  // The process id keeps it apart from the folder of the same test in another process.
  const fs::path folder =
      fs::path(testing::TempDir()) / fmt::format("syncopate-job-{}-{}", name, ::getpid());
  static Made made;
  made.folders.push_back(folder);
  fs::remove_all(folder);
  return folder;
}

const Dataset& small_dataset() {
  static const Dataset dataset = [] {
    Dataset cut = load_dataset("synthetic", {});
    const auto keep = [](ImageSet& set, std::size_t samples) {
      set.pixels.resize(samples * set.shape.values());
      set.labels.resize(samples);
    };
    keep(cut.train, 600);
    keep(cut.test, 200);
    return cut;
  }();
  return dataset;
}

TrainConfig toy_config(const fs::path& folder) {
  TrainConfig config;
  config.network = &toy_network;
  config.data = "synthetic";
  config.workers = 3;
  config.batch_size = 16;
  config.learning_rate = 0.05;
  config.epochs = 4;
  config.trace = TraceDetail::off;  // most tests read none
  config.run_dir = folder;
  return config;
}

SimulatedJob toy_job(const TrainConfig& config, bool resume, const sim::NetworkProfile& network) {
  const Dataset& dataset = small_dataset();
  TrainConfig resolved = resolve_config(config, {});
  const ToyReplica::Options toy{
      .features = dataset.train.shape.values(),
      .classes = dataset.classes,
      .momentum = resolved.optimizer == Optimizer::sgd ? 0 : resolved.momentum,
      .clip_norm = resolved.clip_norm};
  if (!resume) {
    RunFolder(config.run_dir).create();
  }
  return SimulatedJob({.config = std::move(resolved),
                       .dataset = dataset,
                       .make_replica = [toy] { return std::make_unique<LogisticReplica>(toy); },
                       .resume = resume,
                       .network = network});
}

fs::path cluster_of(const fs::path& folder, const std::string& text) {
  fs::create_directories(folder.parent_path());
  const fs::path path = folder.string() + "-cluster.toml";
  write_file(path, text);
  return path;
}

Safetensors last_checkpoint(const TrainConfig& config) {
  const fs::path path = *latest_checkpoint(config.run_dir / "checkpoints");
  return {read_file(path), path};
}

}  // namespace syncopate
