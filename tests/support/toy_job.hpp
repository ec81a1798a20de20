#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/safetensors.hpp"
#include "sim/job/simulated_job.hpp"

namespace syncopate {

using sim::SimulatedJob;

/// Returns the path of a folder for this test that does not exist yet.
std::filesystem::path fresh_folder(const std::string& name);

/// Returns a part of the synthetic dataset, so that an epoch is short: 600 training samples and 200
/// test samples.
const Dataset& small_dataset();

/// Returns a configuration for `toy_job`: three workers, batches of 16, 4 epochs, learning rate
/// 0.05, with run folder `folder`.
TrainConfig toy_config(const std::filesystem::path& folder);

/// Makes a simulated job of logistic regression with momentum `config.momentum`. Resolves open
/// options of the configuration, and makes the run folder unless the job resumes.
SimulatedJob toy_job(const TrainConfig& config, bool resume = false,
                     const sim::NetworkProfile& network = {});

/// A cluster file of three devices that take one second for a mini-batch of 16 samples.
inline constexpr const char* equal_speeds =
    "name = \"equal\"\nbatch_samples = 16\n[[devices]]\nname = \"d\"\ncount = 3\n"
    "seconds_per_batch = 1.0\n";

/// Writes a cluster file beside a run folder.
std::filesystem::path cluster_of(const std::filesystem::path& folder, const std::string& text);

Safetensors last_checkpoint(const TrainConfig& config);

}  // namespace syncopate
