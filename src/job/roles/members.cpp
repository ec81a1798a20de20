#include "job/roles/members.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <utility>

#include "base/machine_identity.hpp"
#include "checkpoint/checkpoint.hpp"
#include "job/roles/step_cost.hpp"
#include "kernels/thread_pool.hpp"
#include "train/member_roles.hpp"

namespace syncopate::cli {
namespace {

/// Testing gives way to training.
constexpr int evaluator_niceness = 19;

wire::Join introduction(wire::Role role, Rank rank, const std::string& device,
                        const std::string& agreement) {
  wire::Join join;
  join.set_role(role);
  join.set_index(rank.value);
  join.set_host(host_name());
  join.set_pid(process_id());
  join.set_device(device);
  join.set_agreement(agreement);
  join.set_machine(machine_identity());
  return join;
}

std::string agreement_of(const Job& job, Replica& replica) {
  return job.plan().agreement(replica.view(ReplicaVector::params).size());
}

class Worker final : public Candidate {
 public:
  Worker(wire::Join join, const Job& job, Rank rank, std::unique_ptr<Replica> replica)
      : Candidate(std::move(join)), job_(job), rank_(rank), replica_(std::move(replica)) {}

 private:
  void play(World& world, MemberLink& link) override {
    run_worker(world, link, *replica_,
               {.plan = job_.plan(),
                .dataset = job_.dataset(),
                .folder = job_.folder(),
                .rank = rank_,
                .resume_from = job_.resume_from(),
                .shared_memory = job_.shared_memory(),
                .cores = std::thread::hardware_concurrency()});
  }

  const Job& job_;
  const Rank rank_;
  const std::unique_ptr<Replica> replica_;
};

class Server final : public Candidate {
 public:
  Server(wire::Join join, const Job& job, Rank shard, ModelLayout layout)
      : Candidate(std::move(join)), job_(job), shard_(shard), layout_(std::move(layout)) {}

 private:
  void play(World& world, MemberLink& link) override {
    run_server(world, link,
               {.plan = job_.plan(),
                .folder = job_.folder(),
                .shard = shard_,
                .layout = layout_,
                .train_samples = job_.dataset().train.samples(),
                .resume_from = job_.resume_from(),
                .threads = default_thread_count()});
  }

  const Job& job_;
  const Rank shard_;
  const ModelLayout layout_;
};

class Evaluator final : public Candidate {
 public:
  Evaluator(wire::Join join, const Job& job, std::unique_ptr<Replica> replica)
      : Candidate(std::move(join)), job_(job), replica_(std::move(replica)) {}

 private:
  void play(World& world, MemberLink& link) override {
    ::setpriority(PRIO_PROCESS, 0, evaluator_niceness);  // of this thread alone
    run_evaluator(world, link, *replica_, {.plan = job_.plan(), .dataset = job_.dataset()});
  }

  const Job& job_;
  const std::unique_ptr<Replica> replica_;
};

}  // namespace

void Candidate::take_part(World& world) {
  MemberLink link(world, {.join = join_});
  play(world, link);
}

std::unique_ptr<Candidate> make_worker(const Job& job, Rank rank) {
  const JobPlan& plan = job.plan();
  const std::string device = job.device(rank);
  auto replica = job.make_replica(device);
  wire::Join join = introduction(wire::ROLE_WORKER, rank, plan.device_name(rank, device),
                                 agreement_of(job, *replica));
  if (plan.step_budget(rank) > Duration::zero()) {
    const Dataset& dataset = job.dataset();
    join.set_step_budget(to_seconds(plan.step_budget(rank)));
    join.set_step_cost(measure_step_cost(*replica, dataset, plan.feed(dataset.train, rank)));
  }
  return std::make_unique<Worker>(std::move(join), job, rank, std::move(replica));
}

std::unique_ptr<Candidate> make_server(const Job& job, Rank shard) {
  const auto replica = job.make_replica("cpu");
  wire::Join join = introduction(wire::ROLE_SERVER, shard, "cpu", agreement_of(job, *replica));
  return std::make_unique<Server>(std::move(join), job, shard, layout_of(*replica));
}

std::unique_ptr<Candidate> make_evaluator(const Job& job) {
  const std::string device = job.device(Rank{0});
  auto replica = job.make_replica(device);
  wire::Join join =
      introduction(wire::ROLE_EVALUATOR, Rank{0}, device, agreement_of(job, *replica));
  return std::make_unique<Evaluator>(std::move(join), job, std::move(replica));
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::uint32_t process_id() {
  return static_cast<std::uint32_t>(::getpid());
}

}  // namespace syncopate::cli
