#include "sim/job/simulated_job.hpp"

#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "checkpoint/checkpoint.hpp"
#include "scheme/shared_model.hpp"

namespace syncopate::sim {
namespace {

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
  if (options_.resume) {
    resume_from_ = latest_whole_checkpoint(
        folder_.checkpoints(), [](const std::string& damage) { log::warn("{}", damage); });
  }
  add_nodes();
  if (uses_shared_model(options_.config)) {
    share_memory();
  }
}

void SimulatedJob::add_nodes() {
  simulation_.add_node("coordinator", [this](World& world) { coordinate(world); });
  const Membership::Options membership = plan_.membership();
  for (const MemberRole& role : member_roles()) {
    for (std::uint32_t index = 0; index < role.count(membership); ++index) {
      add_member(role, Rank{index});
    }
  }
}

NodeId SimulatedJob::add_member(const MemberRole& role, Rank index) {
  return simulation_.add_node(std::string(role.name), [this, &role, index](World& world) {
    run_member(world, role, index);
  });
}

void SimulatedJob::share_memory() {
  const auto replica = options_.make_replica();
  memory_.resize(SharedModel::bytes_for({.params = replica->view(ReplicaVector::params).size(),
                                         .buffers = replica->view(ReplicaVector::buffers).size(),
                                         .workers = options_.config.workers}));
  shared_memory_ = memory_;
}

void SimulatedJob::run() {
  simulation_.run();
}

void SimulatedJob::coordinate(World& world) {
  try {
    run_coordinator(
        world, *this,
        {.membership = plan_.membership(),
         .watch = options_.watch,
         .emit = [this](const Json& event) { note(event); },
         .interrupted =
             [this] { return interrupted_ || (options_.interrupted && options_.interrupted()); },
         .wall_time = options_.wall_time});
  } catch (const std::exception&) {
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

void SimulatedJob::run_member(World& world, const MemberRole& role, Rank index) {
  world.transport().introduce(coordinator_node, address_of(coordinator_node));
  const auto runner = role.make(*this, index);
  const bool is_worker = role.role == Role::worker;
  try {
    runner->run(world, [this, self = world.transport().self()](const std::string&) {
      blamed_.push_back(self);
    });
  } catch (const Error& error) {
    if (is_worker) {
      errors_[index.value] = error.what();
    }
    throw;
  }
  if (is_worker && options_.keep_models) {
    keep_model(index, *runner->replica());
  }
}

void SimulatedJob::keep_model(Rank rank, Replica& replica) {
  params_[rank.value] = copy_of(replica.view(ReplicaVector::params));
  buffers_[rank.value] = copy_of(replica.view(ReplicaVector::buffers));
}

wire::Join SimulatedJob::introduction(Role role, Rank index, Replica&) const {
  wire::Join join = join_message(role, index);
  join.set_host("sim");  // sets no process id, because a message's bytes must not depend on it
  join.set_device(role == Role::worker ? plan_.device_name(index, "simulated") : "simulated");
  join.set_agreement("the same for all");
  return join;
}

std::optional<std::filesystem::path> SimulatedJob::resume_from() const {
  return resume_from_;
}

}  // namespace syncopate::sim
