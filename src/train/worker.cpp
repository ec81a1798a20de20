#include "train/worker.hpp"

#include <vector>

#include "base/errors.hpp"
#include "scheme/registry.hpp"
#include "train/initial_state.hpp"
#include "train/trainer.hpp"

namespace syncopate {
namespace {

Group group_of_workers(World& world, const View& view, const WorkerOptions& options) {
  std::vector<NodeId> nodes;
  for (const Member& worker : view.workers()) {
    nodes.push_back(worker.node);
  }
  return Group(world, {.members = std::move(nodes),
                       .self = options.rank,
                       .wait_limit = from_seconds(options.plan.config().wait_limit)});
}

std::optional<SnapshotSender> snapshots_of(World& world, const View& view, Rank rank) {
  const Member* evaluator = view.find(Role::evaluator, Rank{0});
  if (rank != Rank{0} || !evaluator) {
    return std::nullopt;
  }
  return SnapshotSender(world.transport(), evaluator->node);
}

Progress begin(Group& workers, Replica& replica, const WorkerOptions& options) {
  if (options.resume_from) {
    return restore_state(workers, replica, options.plan.config(), *options.resume_from);
  }
  draw_initial_state(workers, replica, options.plan.config());
  return {};
}

Weights weights_of(const TrainConfig& config) {
  return config.weights == "uniform" ? Weights::uniform : Weights::samples;
}

}  // namespace

void run_worker(World& world, MemberLink& link, Replica& replica, const WorkerOptions& options) {
  const View& view = link.join();
  const TrainConfig& config = options.plan.config();
  try {
    Group workers = group_of_workers(world, view, options);
    const Progress start = begin(workers, replica, options);
    keep_rounds_up_to(options.folder.worker_log(options.rank), start.round);
    const auto scheme = make_scheme(
        workers,
        {.name = config.scheme, .weights = weights_of(config), .done = Round{start.round}});
    link.barrier();
    Trainer trainer(world, link, replica, *scheme,
                    {.config = config,
                     .dataset = options.dataset,
                     .feed = options.plan.feed(options.dataset.train, options.rank),
                     .pacer = options.plan.pacer(options.rank),
                     .folder = options.folder,
                     .rank = options.rank,
                     .start = start,
                     .snapshots = snapshots_of(world, view, options.rank)});
    trainer.run();
    wire::Leave leave;
    *leave.mutable_last() = trainer.status("done");
    link.leave(leave);
  } catch (const std::exception& error) {
    link.fail(error);
  }
}

}  // namespace syncopate
