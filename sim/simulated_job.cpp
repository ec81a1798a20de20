#include "sim/simulated_job.hpp"

#include <utility>

#include "base/errors.hpp"
#include "checkpoint/checkpoint.hpp"
#include "membership/member_link.hpp"
#include "pacer/pacer_control.hpp"
#include "scheme/shared_model.hpp"
#include "train/member_roles.hpp"

namespace syncopate::sim {
namespace {

void meet_the_coordinator(World& world) {
  world.transport().introduce(coordinator_node, address_of(coordinator_node));
}

std::vector<float> copy_of(std::span<const float> values) {
  return {values.begin(), values.end()};
}

}  // namespace

SimulatedJob::SimulatedJob(Options options)
    : options_(std::move(options)),
      plan_(options_.config),
      folder_(options_.config.run_dir),
      simulation_({.seed = options_.config.seed,
                   .network = options_.network,
                   .scheduler = options_.scheduler}),
      params_(options_.config.workers),
      buffers_(options_.config.workers),
      errors_(options_.config.workers) {
  add_nodes();
  if (uses_shared_model(options_.config)) {
    share_memory();
  }
}

void SimulatedJob::add_nodes() {
  simulation_.add_node("coordinator", [this](World& world) { coordinate(world); });
  for (std::uint32_t rank = 0; rank < options_.config.workers; ++rank) {
    simulation_.add_node("worker", [this, rank](World& world) { work(world, Rank{rank}); });
  }
  for (std::uint32_t shard = 0; shard < options_.config.servers; ++shard) {
    simulation_.add_node("server", [this, shard](World& world) { serve(world, Rank{shard}); });
  }
  simulation_.add_node("evaluator", [this](World& world) { evaluate(world); });
}

void SimulatedJob::share_memory() {
  const auto replica = options_.make_replica();
  shared_memory_.resize(
      SharedModel::bytes_for({.params = replica->view(ReplicaVector::params).size(),
                              .buffers = replica->view(ReplicaVector::buffers).size(),
                              .workers = options_.config.workers}));
}

void SimulatedJob::run() {
  simulation_.run();
}

void SimulatedJob::coordinate(World& world) {
  const Clock& watch = options_.watch == nullptr ? world : *options_.watch;
  Recorder recorder(
      watch,
      {.config = options_.config,
       .folder = folder_,
       .resumed = options_.resume,
       .emit = [this](const Json& event) { note(event); },
       .interrupted =
           [this] { return interrupted_ || (options_.interrupted && options_.interrupted()); }});
  try {
    const auto resumed = checkpoint();
    Coordinator coordinator(world, recorder,
                            {.membership = plan_.membership(),
                             .pacing = make_pacer_service(
                                 world, recorder, plan_.pacing(resumed ? round_of(*resumed) : 0))});
    coordinator.run();
    recorder.finish();
  } catch (const std::exception& error) {
    recorder.fail(error);
    failure_ = std::current_exception();
    throw;
  }
}

void SimulatedJob::note(const Json& event) {
  if (event.at("event") == "finished") {
    summary_ = event.at("summary");
  }
  if (options_.emit) {
    options_.emit(event);
  } else {
    events_.push_back(event);
  }
}

void SimulatedJob::work(World& world, Rank rank) {
  meet_the_coordinator(world);
  const auto replica = options_.make_replica();
  try {
    MemberLink link(world, {.join = introduction(wire::ROLE_WORKER, rank,
                                                 plan_.device_name(rank, "simulated"))});
    run_worker(world, link, *replica,
               {.plan = plan_,
                .dataset = options_.dataset,
                .folder = folder_,
                .rank = rank,
                .resume_from = checkpoint(),
                .shared_memory = shared_memory_});
  } catch (const Error& error) {
    errors_[rank.value] = error.what();
    throw;
  }
  if (options_.keep_models) {
    params_[rank.value] = copy_of(replica->view(ReplicaVector::params));
    buffers_[rank.value] = copy_of(replica->view(ReplicaVector::buffers));
  }
}

void SimulatedJob::serve(World& world, Rank shard) {
  meet_the_coordinator(world);
  MemberLink link(world, {.join = introduction(wire::ROLE_SERVER, shard, "simulated")});
  run_server(world, link,
             {.plan = plan_,
              .folder = folder_,
              .shard = shard,
              .layout = layout_of(*options_.make_replica()),
              .train_samples = options_.dataset.train.samples(),
              .resume_from = checkpoint()});
}

void SimulatedJob::evaluate(World& world) {
  meet_the_coordinator(world);
  const auto replica = options_.make_replica();
  MemberLink link(world, {.join = introduction(wire::ROLE_EVALUATOR, Rank{0}, "simulated")});
  run_evaluator(world, link, *replica, {.plan = plan_, .dataset = options_.dataset});
}

wire::Join SimulatedJob::introduction(wire::Role role, Rank rank, const std::string& device) const {
  wire::Join join;
  join.set_role(role);
  join.set_index(rank.value);
  join.set_host("sim");  // and no process id: the bytes of a message must not depend on it
  join.set_device(device);
  join.set_agreement("the same for all");
  return join;
}

std::optional<std::filesystem::path> SimulatedJob::checkpoint() const {
  return options_.resume ? latest_checkpoint(folder_.checkpoints()) : std::nullopt;
}

}  // namespace syncopate::sim
