#include "cli/roles/local_job.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "cli/exit_status.hpp"
#include "cli/roles/step_cost.hpp"
#include "cluster/coordinator.hpp"
#include "cluster/member_link.hpp"
#include "cluster/real_world.hpp"
#include "torch/factory.hpp"
#include "train/checkpoint.hpp"
#include "train/evaluator.hpp"
#include "train/recorder.hpp"
#include "train/worker.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace syncopate::cli {
namespace {

/// Testing gives way to training.
constexpr int evaluator_niceness = 19;

volatile std::sig_atomic_t asked_to_end = 0;

void ask_to_end(int /*signal*/) {
  asked_to_end = 1;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

wire::Join introduction(wire::Role role, std::uint32_t index, const std::string& device,
                        const std::string& agreement) {
  wire::Join join;
  join.set_role(role);
  join.set_index(index);
  join.set_host(host_name());
  join.set_pid(static_cast<std::uint32_t>(::getpid()));
  join.set_device(device);
  join.set_agreement(agreement);
  return join;
}

void write_line(int descriptor, const Recorder::Json& event) {
  const std::string line = event.dump() + "\n";
  // Nobody left to read events is nobody to tell: the supervisor's end is the job's end anyway.
  [[maybe_unused]] const ssize_t written = ::write(descriptor, line.data(), line.size());
}

/// What has already joined the job leaves the telling to the coordinator.
int quietly(const std::exception& error) {
  log::debug("{}", error.what());
  return status_of(error);
}

int loudly(const std::exception& error) {
  log::warn("{}", error.what());
  return status_of(error);
}

}  // namespace

LocalJob::LocalJob(const TrainCommand& command)
    : plan_(command.config),
      folder_(command.config.run_dir),
      dataset_(load_dataset(command.config.data, command.config.data_dir)),
      token_(unguessable_token()) {
  if (!command.resumed) {
    return;
  }
  resume_from_ = latest_checkpoint(folder_.checkpoints());
  if (!resume_from_) {
    throw DataError(
        fmt::format("{} has no checkpoint to resume from", folder_.checkpoints().string()));
  }
  keep_rounds_up_to(folder_.evaluations(), round_of(*resume_from_));
}

std::unique_ptr<Replica> LocalJob::make_replica(const std::string& device) const {
  const TrainConfig& config = plan_.config();
  torch_backend::set_threads(config.threads);
  return torch_backend::make_replica(
      {.name = config.network, .input = dataset_.train.shape, .classes = dataset_.classes},
      {.name = config.optimizer,
       .learning_rate = config.learning_rate.value(),
       .momentum = config.momentum,
       .weight_decay = config.weight_decay},
      device);
}

std::string LocalJob::agreement(Replica& replica) const {
  return plan_.agreement(replica.view(Part::params).size());
}

int LocalJob::coordinate(int listener, int events) const {
  std::signal(SIGTERM, ask_to_end);
  RealWorld world(TcpTransport::listen({.token = token_, .descriptor = listener}));
  Recorder recorder(world, {.config = plan_.config(),
                            .folder = folder_,
                            .cores = std::thread::hardware_concurrency(),
                            .resumed = resume_from_.has_value(),
                            .emit = [&](const Recorder::Json& event) { write_line(events, event); },
                            .interrupted = [] { return asked_to_end != 0; }});
  try {
    Coordinator coordinator(world, {.workers = plan_.config().workers, .evaluators = 1}, recorder);
    coordinator.run();
    recorder.finish();
    return 0;
  } catch (const Error& error) {
    recorder.fail(error);
    return status_of(error);
  }
}

int LocalJob::work(Rank rank, const std::string& hub) const {
  try {
    const std::string device = torch_backend::resolve_device(plan_.config().device, rank.value);
    const auto replica = make_replica(device);
    wire::Join join = introduction(wire::ROLE_WORKER, rank.value, plan_.device_name(rank, device),
                                   agreement(*replica));
    if (plan_.step_budget(rank) > Duration::zero()) {
      join.set_step_budget(to_seconds(plan_.step_budget(rank)));
      join.set_step_cost(measure_step_cost(*replica, dataset_, plan_.feed(dataset_.train, rank)));
    }
    RealWorld world(TcpTransport::join({.hub = hub, .token = token_}));
    MemberLink link(world, {.join = join});
    try {
      run_worker(world, link, *replica,
                 {.plan = plan_,
                  .dataset = dataset_,
                  .folder = folder_,
                  .rank = rank,
                  .resume_from = resume_from_});
    } catch (const std::exception& error) {
      return quietly(error);
    }
    return 0;
  } catch (const std::exception& error) {
    return loudly(error);
  }
}

int LocalJob::evaluate(const std::string& hub) const {
  ::setpriority(PRIO_PROCESS, 0, evaluator_niceness);
  try {
    const std::string device = torch_backend::resolve_device(plan_.config().device, 0);
    const auto replica = make_replica(device);
    RealWorld world(TcpTransport::join({.hub = hub, .token = token_}));
    MemberLink link(world,
                    {.join = introduction(wire::ROLE_EVALUATOR, 0, device, agreement(*replica))});
    try {
      run_evaluator(world, link, *replica, dataset_);
    } catch (const std::exception& error) {
      return quietly(error);
    }
    return 0;
  } catch (const std::exception& error) {
    return loudly(error);
  }
}

}  // namespace syncopate::cli
