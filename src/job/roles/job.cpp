#include "job/roles/job.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "checkpoint/checkpoint.hpp"
#include "job/spec/config_file.hpp"
#include "job/spec/worker_devices.hpp"
#include "scheme/shared_model.hpp"
#include "torch/factory.hpp"

namespace syncopate::cli {
namespace {

torch_backend::NetworkSettings network_of(const TrainConfig& config, const Dataset& dataset) {
  return {.name = std::string(config.network->name),
          .input = dataset.train.shape,
          .classes = dataset.classes};
}

}  // namespace

Job::Job(const TrainConfig& config, std::optional<std::filesystem::path> resume_from)
    : plan_(config),
      folder_(config.run_dir),
      dataset_(load_dataset(config.data, config.data_dir)),
      resume_from_(std::move(resume_from)) {}

std::string Job::device(Rank rank) const {
  return torch_backend::resolve_device(device_of_worker(config(), rank.value), rank.value);
}

std::unique_ptr<Replica> Job::make_replica(const std::string& device) const {
  torch_backend::set_threads(config().threads);
  return torch_backend::make_replica(network_of(config(), dataset_),
                                     {.optimizer = config().optimizer,
                                      .learning_rate = config().learning_rate.value(),
                                      .momentum = config().momentum,
                                      .weight_decay = config().weight_decay,
                                      .beta1 = config().beta1,
                                      .beta2 = config().beta2,
                                      .alpha = config().alpha,
                                      .epsilon = config().epsilon},
                                     device);
}

void Job::share_memory() {
  if (uses_shared_model(config())) {
    const auto facts = torch_backend::network_facts(network_of(config(), dataset_));
    shared_memory_ = SharedMemory(SharedModel::bytes_for(
        {.params = facts.parameters, .buffers = facts.buffers, .workers = config().workers}));
  }
}

std::string Job::agreement() const {
  return plan_.agreement(torch_backend::network_facts(network_of(config(), dataset_)).parameters);
}

wire::JobDescription Job::description() const {
  TrainConfig config = plan_.config();
  config.run_dir = std::filesystem::absolute(config.run_dir);
  wire::JobDescription description;
  description.set_config(to_toml(config));
  if (resume_from_) {
    description.set_checkpoint(std::filesystem::absolute(*resume_from_).string());
  }
  return description;
}

std::optional<std::filesystem::path> checkpoint_of(const TrainCommand& command) {
  if (!command.resumed) {
    return std::nullopt;
  }
  const RunFolder folder(command.config.run_dir);
  auto checkpoint = latest_checkpoint(folder.checkpoints());
  if (!checkpoint) {
    throw DataError(
        fmt::format("{} has no checkpoint to resume from", folder.checkpoints().string()));
  }
  keep_rounds_up_to(folder.evaluations(), round_of(*checkpoint));
  return checkpoint;
}

}  // namespace syncopate::cli
