#include "job/members/members.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/errors.hpp"
#include "checkpoint/checkpoint.hpp"
#include "pacer/pacer_control.hpp"

namespace syncopate {
namespace {

class WorkerRunner final : public RoleRunner {
 public:
  WorkerRunner(wire::Join join, const MemberSite& site, Rank rank, std::unique_ptr<Replica> replica)
      : RoleRunner(std::move(join)), site_(site), rank_(rank), replica_(std::move(replica)) {}

  Replica* replica() override { return replica_.get(); }

 private:
  void run_role(World& world, MemberLink& link) override {
    run_worker(world, link, *replica_, worker_options(site_, rank_));
  }

  const MemberSite& site_;
  const Rank rank_;
  const std::unique_ptr<Replica> replica_;
};

class ServerRunner final : public RoleRunner {
 public:
  ServerRunner(wire::Join join, const MemberSite& site, Rank shard, ModelLayout layout)
      : RoleRunner(std::move(join)), site_(site), shard_(shard), layout_(std::move(layout)) {}

 private:
  void run_role(World& world, MemberLink& link) override {
    run_server(world, link,
               {.plan = site_.plan(),
                .folder = site_.folder(),
                .shard = shard_,
                .layout = layout_,
                .train_samples = site_.dataset().train.samples(),
                .resume_from = site_.resume_from(),
                .threads = site_.server_threads()});
  }

  const MemberSite& site_;
  const Rank shard_;
  const ModelLayout layout_;
};

class EvaluatorRunner final : public RoleRunner {
 public:
  EvaluatorRunner(wire::Join join, const MemberSite& site, std::unique_ptr<Replica> replica)
      : RoleRunner(std::move(join)), site_(site), replica_(std::move(replica)) {}

  Replica* replica() override { return replica_.get(); }

 private:
  void run_role(World& world, MemberLink& link) override {
    run_evaluator(world, link, *replica_,
                  {.plan = site_.plan(), .dataset = site_.dataset(), .before_testing = [this] {
                     site_.before_evaluating();
                   }});
  }

  const MemberSite& site_;
  const std::unique_ptr<Replica> replica_;
};

std::unique_ptr<RoleRunner> make_worker(const MemberSite& site, Rank rank) {
  auto replica = site.make_replica(Role::worker, rank);
  wire::Join join = site.introduction(Role::worker, rank, *replica);
  return std::make_unique<WorkerRunner>(std::move(join), site, rank, std::move(replica));
}

std::unique_ptr<RoleRunner> make_server(const MemberSite& site, Rank shard) {
  const auto replica = site.make_replica(Role::server, shard);
  wire::Join join = site.introduction(Role::server, shard, *replica);
  return std::make_unique<ServerRunner>(std::move(join), site, shard, layout_of(*replica));
}

std::unique_ptr<RoleRunner> make_evaluator(const MemberSite& site, Rank index) {
  auto replica = site.make_replica(Role::evaluator, index);
  wire::Join join = site.introduction(Role::evaluator, index, *replica);
  return std::make_unique<EvaluatorRunner>(std::move(join), site, std::move(replica));
}

using Counts = Membership::Options;

constexpr auto roles =
    std::to_array<MemberRole>({{.role = Role::worker,
                                .name = "worker",
                                .count = [](const Counts& job) { return job.workers; },
                                .make = make_worker},
                               {.role = Role::server,
                                .name = "server",
                                .count = [](const Counts& job) { return job.servers; },
                                .make = make_server},
                               {.role = Role::evaluator,
                                .name = "evaluator",
                                .count = [](const Counts& job) { return job.evaluators; },
                                .make = make_evaluator}});

wire::Role wire_role(Role role) {
  switch (role) {
    case Role::worker: return wire::ROLE_WORKER;
    case Role::server: return wire::ROLE_SERVER;
    case Role::evaluator: break;
  }
  return wire::ROLE_EVALUATOR;
}

}  // namespace

wire::Join join_message(Role role, Rank index) {
  wire::Join join;
  join.set_role(wire_role(role));
  join.set_index(index.value);
  return join;
}

WorkerOptions worker_options(const MemberSite& site, Rank rank) {
  return {.plan = site.plan(),
          .dataset = site.dataset(),
          .folder = site.folder(),
          .rank = rank,
          .resume_from = site.resume_from(),
          .shared_memory = site.shared_memory(),
          .cores = site.cores()};
}

void RoleRunner::run(World& world, std::function<void(const std::string& reason)> blamed) {
  MemberLink link(world, {.join = join_, .blamed = std::move(blamed)});
  run_role(world, link);
}

std::span<const MemberRole> member_roles() {
  return roles;
}

const MemberRole& member_role(Role role) {
  const auto* const found = std::find_if(
      roles.begin(), roles.end(), [&](const MemberRole& known) { return known.role == role; });
  if (found == roles.end()) {
    throw InternalError("a job has no such role");
  }
  return *found;
}

void run_coordinator(World& world, const MemberSite& site, const CoordinatorSetup& setup) {
  const Clock& watch = setup.watch == nullptr ? world : *setup.watch;
  const auto checkpoint = site.resume_from();
  Recorder recorder(watch, {.config = site.plan().config(),
                            .folder = site.folder(),
                            .cores = std::max(site.cores(), 1U),
                            .resumed = checkpoint.has_value(),
                            .emit = setup.emit,
                            .interrupted = setup.interrupted,
                            .world = &world,
                            .wall_time = setup.wall_time});
  try {
    setup.before_gathering();
    Coordinator coordinator(
        world, recorder,
        {.membership = setup.membership,
         .pacing = make_pacer_service(world, recorder,
                                      site.plan().pacing(checkpoint ? round_of(*checkpoint) : 0)),
         .service = setup.service,
         .description = setup.description,
         .name = setup.name,
         .hung = setup.hung});
    coordinator.run();
    recorder.finish();
  } catch (const std::exception& error) {
    recorder.fail(error);
    throw;
  }
}

}  // namespace syncopate
