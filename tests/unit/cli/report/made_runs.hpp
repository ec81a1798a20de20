#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace syncopate::cli {

/// Makes run folders of known content below a temporary folder, and removes them at its end.
class MadeRuns {
 public:
  struct Options {
    std::string scheme = "ssgd";
    std::uint64_t seed = 1;
    std::string split = "iid";
    std::string network = "mlp";
    std::string cluster = "clusters/mixed.toml";
    std::string more = {};  ///< lines of config.toml
    double seconds = 1;     ///< time between two evaluations
    std::vector<double> accuracies = {0.2, 0.6, 0.8};
    double throughput = 1000;
    double communicate = 0.05;  ///< seconds of communication in a round
  };

  MadeRuns() {
    std::string name = (std::filesystem::temp_directory_path() / "made_runs_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~MadeRuns() { std::filesystem::remove_all(root_); }
  MadeRuns(const MadeRuns&) = delete;
  MadeRuns& operator=(const MadeRuns&) = delete;

  const std::filesystem::path& root() const { return root_; }

  std::filesystem::path add(const std::string& name) { return add(name, Options{}); }
  std::filesystem::path add(const std::string& name, const Options& options) {
    const std::filesystem::path folder = root_ / name;
    std::filesystem::create_directories(folder / "workers");
    write_file(folder / "config.toml",
               fmt::format("scheme = '{}'\nnetwork = '{}'\ndata = 'synthetic'\nsplit = '{}'\n"
                           "cluster = '{}'\nseed = {}\nvirtual_time = true\n{}",
                           options.scheme, options.network, options.split, options.cluster,
                           options.seed, options.more));
    write_file(folder / "summary.json", summary(options).dump());
    std::string lines;
    for (const auto& one : evaluations(options)) {
      lines += one.dump() + "\n";
    }
    write_file(folder / "evaluations.jsonl", lines);
    for (int rank = 0; rank < 2; ++rank) {
      write_file(folder / "workers" / fmt::format("{}.jsonl", rank),
                 worker(rank, options.communicate));
    }
    return folder;
  }

 private:
  using Json = nlohmann::ordered_json;

  static Json evaluations(const Options& options) {
    Json list = Json::array();
    for (std::size_t i = 0; i < options.accuracies.size(); ++i) {
      const double time = options.seconds * static_cast<double>(i + 1);
      list.push_back({{"round", i + 1},
                      {"samples", 1000 * (i + 1)},
                      {"epoch", 0.1},
                      {"training_seconds", time},
                      {"accuracy", options.accuracies[i]},
                      {"loss", 1.0},
                      {"evaluation_seconds", 0.0},
                      {"batch_norm", nullptr}});
    }
    return list;
  }

  static Json device(const char* name, double computing, double wait) {
    return {{"device", name},
            {"computing_time_ratio", computing},
            {"communication_ratio", 0.05},
            {"wait_ratio", wait},
            {"throughput", 500}};
  }

  static Json summary(const Options& options) {
    return {
        {"version", "0.1.0"},
        {"machine", "some CPU, 2 cores"},
        {"scheme", options.scheme},
        {"network", "mlp"},
        {"data", "synthetic"},
        {"seed", options.seed},
        {"ended_because", "every epoch is done"},
        {"learning_rate", 0.1},
        {"accuracy", options.accuracies.empty() ? Json(nullptr) : Json(options.accuracies.back())},
        {"training_seconds", 4},
        {"samples", 4000},
        {"throughput", options.throughput},
        {"cluster_efficiency", 0.5},
        {"traffic_bytes", 8'000'000},
        {"local_bytes", 4'000'000},
        {"staleness", {{"median", 0}, {"p99", 1}, {"max", 2}}},
        {"workers", {device("gpu (simulated)", 0.25, 0.7), device("cpu (simulated)", 0.9, 0)}},
        {"evaluations", evaluations(options)}};
  }

  /// Returns a worker's log with rounds of one second. Worker 0 computes for 0.25 s of each and
  /// waits for 0.7 s.
  static std::string worker(int rank, double communicate) {
    std::string lines;
    for (int round = 1; round <= 5; ++round) {
      const double computed = (rank == 0 ? 0.25 : 0.95) * round;
      lines += Json{{"round", round},
                    {"training_seconds", round},
                    {"own_steps", 1},
                    {"own_samples", 500},
                    {"data_seconds", 0},
                    {"compute_seconds", computed},
                    {"forward_seconds", computed},
                    {"communicate_seconds", communicate * round},
                    {"wait_seconds", (rank == 0 ? 0.7 : 0.0) * round}}
                   .dump() +
               "\n";
    }
    return lines;
  }

  std::filesystem::path root_;
};

}  // namespace syncopate::cli
