#include "job/roles/training_job.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "checkpoint/checkpoint.hpp"
#include "job/spec/worker_devices.hpp"
#include "torch/factory.hpp"

namespace syncopate {
namespace {

torch_backend::NetworkFacts network_facts(const HostSite& job) {
  const Dataset& dataset = job.dataset();
  return torch_backend::network_facts({.name = std::string(job.config().network->name),
                                       .input = dataset.train.shape,
                                       .classes = dataset.classes});
}

}  // namespace

TrainingJob::TrainingJob(const TrainConfig& config,
                         std::optional<std::filesystem::path> resume_from)
    : HostSite(config, load_dataset(config.data, config.data_dir), std::move(resume_from)) {}

std::string TrainingJob::device(Role role, Rank index) const {
  if (role == Role::server) {
    return "cpu";
  }
  const Rank rank = role == Role::worker ? index : Rank{0};
  return torch_backend::resolve_device(device_of_worker(config(), rank.value), rank.value);
}

std::unique_ptr<Replica> TrainingJob::make_replica(Role role, Rank index) const {
  const TrainConfig& job = config();
  torch_backend::set_threads(job.threads);
  return torch_backend::make_replica({.name = std::string(job.network->name),
                                      .input = dataset().train.shape,
                                      .classes = dataset().classes},
                                     {.optimizer = job.optimizer,
                                      .learning_rate = job.learning_rate.value(),
                                      .momentum = job.momentum,
                                      .weight_decay = job.weight_decay,
                                      .beta1 = job.beta1,
                                      .beta2 = job.beta2,
                                      .alpha = job.alpha,
                                      .epsilon = job.epsilon},
                                     device(role, index));
}

void TrainingJob::share_memory() {
  if (uses_shared_model(config())) {
    HostSite::share_memory(network_facts(*this).buffers);
  }
}

std::uint64_t TrainingJob::parameters() const {
  return network_facts(*this).parameters;
}

std::optional<std::filesystem::path> checkpoint_of(const JobRequest& request) {
  if (!request.resumed) {
    return std::nullopt;
  }
  const RunFolder folder(request.config.run_dir);
  auto checkpoint = latest_checkpoint(folder.checkpoints());
  if (!checkpoint) {
    throw DataError(
        fmt::format("{} has no checkpoint to resume from", folder.checkpoints().string()));
  }
  keep_rounds_up_to(folder.evaluations(), round_of(*checkpoint));
  return checkpoint;
}

}  // namespace syncopate
