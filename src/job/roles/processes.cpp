#include "job/roles/processes.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "checkpoint/checkpoint.hpp"
#include "job/launch/exit_status.hpp"
#include "spec/config.hpp"
#include "torch/factory.hpp"

namespace syncopate {
namespace {

constexpr unsigned evaluator_restarts = 3;

bool left_something(const RunClaim& claim, int status) {
  const RunFolder folder(claim.request().config.run_dir);
  if (status != exit_status::refused) {
    return true;
  }
  if (claim.checkpoint()) {
    return latest_whole_checkpoint(folder.checkpoints(), [](const std::string&) {}) !=
           claim.checkpoint();
  }
  std::error_code unknown;  // after an error `exists` is false: the run left nothing
  return std::filesystem::exists(folder.worker_log(Rank{0}), unknown);
}

/// Returns "worker 2", "server 0" or "evaluator".
std::string process_name(const MemberRole& role, Rank index) {
  return role.role == Role::evaluator ? std::string(role.name)
                                      : fmt::format("{} {}", role.name, index.value);
}

Child process_of(const TrainingJob& job, const CoordinatorEndpoint& endpoint,
                 const MemberRole& role, Rank index) {
  Child child{.name = process_name(role, index), .body = [&job, endpoint, &role, index] {
                return run_member(endpoint, [&] { return role.make(job, index); });
              }};
  child.may_be_lost = role.role == Role::evaluator ||
                      (role.role == Role::worker && job.plan().membership().spares(index));
  child.restarts = role.role == Role::evaluator ? evaluator_restarts : 0;
  return child;
}

}  // namespace

bool servers_share_process(const TrainConfig& config) {
  return config.server_process == ServerProcess::shared;
}

Child coordinator_process(const TrainingJob& job, ListeningSocket listener, Descriptor events,
                          CoordinateOptions options) {
  options.listener = listener.socket.get();
  options.events = events.get();
  Child child{.name = "coordinator", .body = [&job, options] { return coordinate(job, options); }};
  child.alone.push_back(std::move(listener.socket));
  child.alone.push_back(std::move(events));
  return child;
}

Child member_process(const TrainingJob& job, const CoordinatorEndpoint& endpoint, Role role,
                     Rank index) {
  return process_of(job, endpoint, member_role(role), index);
}

std::vector<Child> member_processes(const TrainingJob& job, const CoordinatorEndpoint& endpoint) {
  std::vector<Child> processes;
  for (const MemberRole& role : member_roles()) {
    if (role.role == Role::server && servers_share_process(job.config())) {
      continue;
    }
    for (std::uint32_t index = 0; index < role.count(job.plan().membership()); ++index) {
      processes.push_back(process_of(job, endpoint, role, Rank{index}));
    }
  }
  return processes;
}

MakeMembers servers_in_process(const TrainingJob& job) {
  return [&job] {
    std::vector<std::unique_ptr<RoleRunner>> servers;
    const MemberRole& role = member_role(Role::server);
    const std::uint32_t count =
        servers_share_process(job.config()) ? role.count(job.plan().membership()) : 0;
    for (std::uint32_t shard = 0; shard < count; ++shard) {
      servers.push_back(role.make(job, Rank{shard}));
    }
    return servers;
  };
}

void go_on(RunClaim& claim, const TrainingJob& job) {
  if (const auto checkpoint = job.resume_from()) {
    claim.go_on_from(*checkpoint, round_of(*checkpoint));
  } else if (claim.request().resumed) {
    claim.begin_again();
  }
}

int run_claimed(RunClaim& claim, Supervisor::Options job, const OpenView& open_view) {
  const JobRequest& request = claim.request();
  const auto view = open_view(request.config);
  const int status = run_watched(std::move(job), request.verbosity, *view);
  if (left_something(claim, status)) {
    claim.keep();
  }
  return status;
}

namespace {

std::uint64_t seed_of_dropout(const TrainConfig& job, Rank worker) {
  return Random(job.seed).fork("dropout", worker.value).bits();
}

torch_backend::NetworkSettings network_settings(const HostSite& job) {
  const Dataset& dataset = job.dataset();
  return {.name = job.config().network.text(),
          .input = dataset.train.shape,
          .classes = dataset.classes,
          .weight_init = job.config().weight_init,
          .resize = job.config().resize};
}

/// Refuses images that are too small for the network, once for all processes. Errors: ConfigError.
void expect_images_of_a_size(const HostSite& job) {
  const SampleShape& shape = job.dataset().train.shape;
  const auto& resize = job.config().resize;
  const NetworkSpec& network = *job.config().network;
  const std::string refusal =
      size_refusal(network, resize.value_or(shape.height), resize.value_or(shape.width));
  if (!refusal.empty()) {
    throw ConfigError(
        fmt::format("{}; scale images by --resize {} or more", refusal, network.smallest_side));
  }
}

torch_backend::NetworkFacts network_facts(const HostSite& job) {
  return torch_backend::network_facts(network_settings(job));
}

}  // namespace

TrainingJob::TrainingJob(const TrainConfig& config,
                         std::optional<std::filesystem::path> resume_from)
    : HostSite(config, load_data(config), std::move(resume_from)) {
  expect_images_of_a_size(*this);
  if (!config.network->file.empty() || config.resize) {
    torch_backend::check_network(network_settings(*this));
  }
}

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
  torch_backend::NetworkSettings network = network_settings(*this);
  network.dropout_seed = seed_of_dropout(job, index);
  return torch_backend::make_replica(network,
                                     {.optimizer = job.optimizer,
                                      .learning_rate = job.learning_rate.value(),
                                      .momentum = job.momentum,
                                      .weight_decay = job.weight_decay,
                                      .beta1 = job.beta1,
                                      .beta2 = job.beta2,
                                      .alpha = job.alpha,
                                      .epsilon = job.epsilon,
                                      .clip_norm = job.clip_norm},
                                     device(role, index), job.precision);
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
  std::string damages;
  auto checkpoint = latest_whole_checkpoint(
      folder.checkpoints(), [&](const std::string& damage) { damages += damage + "; "; });
  std::error_code none;
  const bool none_was_written = damages.empty() &&
                                std::filesystem::is_directory(folder.checkpoints(), none) &&
                                std::filesystem::is_empty(folder.checkpoints(), none);
  if (!checkpoint && none_was_written) {
    print_error(fmt::format("the run in {} ended before its first checkpoint: it begins again",
                            folder.root().string())
                    .c_str());
    return std::nullopt;
  }
  if (!checkpoint) {
    throw DataError(fmt::format("{}{} has no checkpoint to resume from", damages,
                                folder.checkpoints().string()));
  }
  if (!damages.empty()) {
    print_error(
        fmt::format("{}the run goes on from {}", damages, checkpoint->filename().string()).c_str());
  }
  return checkpoint;
}

}  // namespace syncopate
