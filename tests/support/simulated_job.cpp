#include "tests/support/simulated_job.hpp"

#include "base/errors.hpp"
#include "scheme/shared_model.hpp"
#include "train/checkpoint.hpp"
#include "train/evaluator.hpp"
#include "train/server_role.hpp"
#include "train/worker.hpp"

namespace syncopate {
namespace {

wire::Join join_of(wire::Role role, std::uint32_t index) {
  wire::Join join;
  join.set_role(role);
  join.set_index(index);
  join.set_host("sim");
  join.set_agreement("the same for all");
  return join;
}

void meet_the_coordinator(World& world) {
  world.transport().introduce(coordinator_node, sim::address_of(coordinator_node));
}

std::vector<float> copy_of(std::span<const float> values) {
  return {values.begin(), values.end()};
}

}  // namespace

SimulatedJob::SimulatedJob(Options options)
    : options_(std::move(options)),
      plan_(options_.config),
      folder_(options_.config.run_dir),
      simulation_({.seed = options_.config.seed, .network = options_.network}),
      params_(options_.config.workers),
      buffers_(options_.config.workers),
      errors_(options_.config.workers) {
  simulation_.add_node("coordinator", [this](World& world) { coordinate(world); });
  for (std::uint32_t rank = 0; rank < options_.config.workers; ++rank) {
    simulation_.add_node("worker", [this, rank](World& world) { work(world, Rank{rank}); });
  }
  for (std::uint32_t shard = 0; shard < options_.config.servers; ++shard) {
    simulation_.add_node("server", [this, shard](World& world) { serve(world, Rank{shard}); });
  }
  if (meets_in_shared_memory(options_.config)) {
    const auto replica = options_.make_replica();
    shared_memory_.resize(SharedModel::bytes_for({.params = replica->view(Part::params).size(),
                                                  .buffers = replica->view(Part::buffers).size(),
                                                  .workers = options_.config.workers}));
  }
  simulation_.add_node("evaluator", [this](World& world) { evaluate(world); });
}

void SimulatedJob::run() {
  if (!options_.resume) {
    folder_.create();
  }
  simulation_.run();
}

void SimulatedJob::coordinate(World& world) {
  Recorder recorder(world, {.config = options_.config,
                            .folder = folder_,
                            .resumed = options_.resume,
                            .emit =
                                [this](const Recorder::Json& event) {
                                  events_.push_back(event);
                                  if (event.at("event") == "finished") {
                                    summary_ = event.at("summary");
                                  }
                                },
                            .interrupted = [this] { return interrupted_; }});
  const auto checkpoint = options_.resume ? latest_checkpoint(folder_.checkpoints()) : std::nullopt;
  Coordinator coordinator(world, recorder,
                          {.membership = plan_.membership(),
                           .pacing = plan_.pacing(checkpoint ? round_of(*checkpoint) : 0)});
  coordinator.run();
  recorder.finish();
}

void SimulatedJob::work(World& world, Rank rank) {
  meet_the_coordinator(world);
  const auto replica = options_.make_replica();
  try {
    MemberLink link(world, {.join = join_of(wire::ROLE_WORKER, rank.value)});
    run_worker(
        world, link, *replica,
        {.plan = plan_,
         .dataset = options_.dataset,
         .folder = folder_,
         .rank = rank,
         .resume_from = options_.resume ? latest_checkpoint(folder_.checkpoints()) : std::nullopt,
         .shared_memory = shared_memory_});
  } catch (const Error& error) {
    errors_[rank.value] = error.what();
    throw;
  }
  params_[rank.value] = copy_of(replica->view(Part::params));
  buffers_[rank.value] = copy_of(replica->view(Part::buffers));
}

void SimulatedJob::serve(World& world, Rank shard) {
  meet_the_coordinator(world);
  const auto replica = options_.make_replica();
  MemberLink link(world, {.join = join_of(wire::ROLE_SERVER, shard.value)});
  run_server(
      world, link,
      {.plan = plan_,
       .folder = folder_,
       .shard = shard,
       .layout = layout_of(*replica),
       .train_samples = options_.dataset.train.samples(),
       .resume_from = options_.resume ? latest_checkpoint(folder_.checkpoints()) : std::nullopt});
}

void SimulatedJob::evaluate(World& world) {
  meet_the_coordinator(world);
  const auto replica = options_.make_replica();
  MemberLink link(world, {.join = join_of(wire::ROLE_EVALUATOR, 0)});
  run_evaluator(world, link, *replica, {.plan = plan_, .dataset = options_.dataset});
}

}  // namespace syncopate
