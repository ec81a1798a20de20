// Goal:   if a running coordinator gets forged or impossible messages, at most their sender is
//         dropped; the end of the evaluator affects no member.
// Method: small jobs in the simulator whose members follow a script; the test compares what the
//         coordinator's observer received.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/errors.hpp"
#include "membership/coordinator.hpp"
#include "membership/member_link.hpp"
#include "sim/simulation.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Seen : public JobObserver {
 public:
  std::vector<std::string> refusals, drops, checkpoints;
  std::vector<double> accuracies;
  std::vector<NodeId> restarts;

  std::optional<std::string> objection(const std::map<NodeId, wire::Join>&) override { return {}; }
  void refused(const std::string& reason) override { refusals.push_back(reason); }
  void awaiting(const std::string&) override {}
  void noted(const std::string&) override {}
  void view_installed(const View&) override {}
  void heartbeat_received(const Member&, const wire::Heartbeat&) override {}
  void evaluated(const wire::Evaluation& result) override {
    accuracies.push_back(result.accuracy());
  }
  void checkpoint_written(const wire::Checkpoint& written) override {
    checkpoints.push_back(written.path());
  }
  void left(const Member&, const wire::Leave&) override {}
  void dropped(const Member&, const std::string& reason) override { drops.push_back(reason); }
  void replaced(const Member& evaluator) override { restarts.push_back(evaluator.node); }
  std::optional<std::string> reason_to_stop() override { return {}; }
};

wire::Join join_of(wire::Role role, std::uint32_t index) {
  wire::Join join;
  join.set_role(role);
  join.set_index(index);
  join.set_host("sim");
  join.set_pid(index);
  return join;
}

class CoordinatorAcceptance : public testing::Test {
 protected:
  /// Adds the coordinator, node 0.
  void coordinate(const Membership::Options& options) {
    simulation_.add_node("coordinator", [this, options](World& world) {
      Coordinator(world, seen_, {.membership = options}).run();
    });
  }

  /// Adds a node that knows the coordinator.
  void add(std::function<void(World&)> body) {
    simulation_.add_node("member", [body = std::move(body)](World& world) {
      world.transport().introduce(coordinator_node, sim::address_of(coordinator_node));
      body(world);
    });
  }

  /// Adds a worker that joins, passes a barrier, does `work`, and leaves.
  void add_worker(std::uint32_t index, std::function<void(World&, MemberLink&)> work) {
    add([index, work = std::move(work)](World& world) {
      MemberLink link(world, {.join = join_of(wire::ROLE_WORKER, index)});
      link.join();
      link.barrier();
      work(world, link);
      link.leave({});
    });
  }

  sim::Simulation simulation_{{.seed = 1}};
  Seen seen_;
};

wire::Evaluation evaluation(double accuracy) {
  wire::Evaluation evaluation;
  evaluation.set_accuracy(accuracy);
  return evaluation;
}

wire::Checkpoint checkpoint(const std::string& path) {
  wire::Checkpoint checkpoint;
  checkpoint.set_path(path);
  return checkpoint;
}

void post(World& world, const wire::ToCoordinator& message) {
  world.transport().post(coordinator_node, tags::to_coordinator, wire::encode(message));
}

/// Returns the body of an evaluator that joins, does `work`, and leaves.
std::function<void(World&)> evaluator_that(std::function<void(World&, MemberLink&)> work) {
  return [work = std::move(work)](World& world) {
    MemberLink link(world, {.join = join_of(wire::ROLE_EVALUATOR, 0)});
    link.join();
    work(world, link);
    link.leave({});
  };
}

TEST_F(CoordinatorAcceptance, TakesResultsFromTheEvaluatorAndCheckpointsFromTheFirstWorkerOnly) {
  coordinate({.workers = 2, .evaluators = 1});
  const auto report = [](World& world, MemberLink& link, double accuracy) {
    link.report(evaluation(accuracy));
    link.report(evaluation(accuracy));
    link.report(checkpoint(fmt::format("{}", accuracy)));
    world.sleep_for(std::chrono::seconds(2));
  };
  add_worker(0, [&](World& world, MemberLink& link) { report(world, link, 0.25); });
  add_worker(1, [&](World& world, MemberLink& link) { report(world, link, 0.5); });
  add(evaluator_that([&](World& world, MemberLink& link) { report(world, link, 0.75); }));
  add([](World& world) {  // a node that has not joined
    world.sleep_for(std::chrono::seconds(1));
    wire::ToCoordinator forged;
    *forged.mutable_evaluation() = evaluation(1);
    post(world, forged);
    *forged.mutable_checkpoint() = checkpoint("/etc/passwd");
    post(world, forged);
    world.transport().close(world.now() + std::chrono::seconds(1));
  });
  simulation_.run();
  EXPECT_THAT(seen_.accuracies, ElementsAre(0.75, 0.75));
  EXPECT_THAT(seen_.checkpoints, ElementsAre("0.25"));
  EXPECT_THAT(
      seen_.refusals,
      testing::UnorderedElementsAre(
          "worker 0 (pid 0 on sim) sent a message that it may not send (evaluation); this one and "
          "others like it are dropped",
          HasSubstr("worker 1 (pid 1 on sim) sent a message that it may not send (evaluation)"),
          HasSubstr("the evaluator (pid 0 on sim) sent a message that it may not send (check"),
          HasSubstr("node 4 sent a message that it may not send (evaluation)")));
}

TEST_F(CoordinatorAcceptance, ReportsThatCannotBeCostTheReporterItsPlace) {
  coordinate({.workers = 2, .evaluators = 0, .spares_workers = true});
  add_worker(0, [](World& world, MemberLink&) { world.sleep_for(std::chrono::seconds(2)); });
  add_worker(1, [](World& world, MemberLink& link) {
    wire::ToCoordinator message;
    message.mutable_missing()->set_waited_seconds(1e300);
    link.send(message);
    EXPECT_THROW(world.sleep_for(std::chrono::hours(1)), PeerLost);
    throw Error("dropped");
  });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_EQ(simulation_.failures().size(), 1U);
  EXPECT_THAT(seen_.drops, ElementsAre("worker 1 (pid 1 on sim): its report of a wait: expected 0 "
                                       "to 4e+09 s, found 1e+300 s"));
}

TEST_F(CoordinatorAcceptance, AServerReportsAWorkerThatItCannotUnderstand) {
  coordinate({.workers = 2, .servers = 1, .evaluators = 0, .spares_workers = true});
  const auto accuse = [](std::uint32_t node) {
    wire::ToCoordinator message;
    message.mutable_rejected()->set_node(node);
    message.mutable_rejected()->set_reason("server 0 cannot accept its request: 2 bytes");
    return message;
  };
  add_worker(0, [&](World& world, MemberLink& link) {
    link.send(accuse(2));  // has no effect, since it comes from a worker
    world.sleep_for(std::chrono::seconds(4));
  });
  add_worker(1, [&](World& world, MemberLink&) {
    EXPECT_THROW(world.sleep_for(std::chrono::hours(1)), PeerLost);
    EXPECT_GE(world.now(), TimePoint(std::chrono::seconds(2)));
    throw Error("dropped");
  });
  add([&](World& world) {
    MemberLink link(world, {.join = join_of(wire::ROLE_SERVER, 0)});
    link.join();
    world.sleep_for(std::chrono::seconds(2));
    link.send(accuse(2));
    link.send(accuse(3));  // accuses itself
    link.send(accuse(99));
    world.sleep_for(std::chrono::seconds(2));
    link.leave({});
  });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_EQ(simulation_.failures().size(), 1U);
  EXPECT_THAT(seen_.drops,
              ElementsAre("worker 1 (pid 1 on sim): server 0 cannot accept its request: 2 bytes"));
  EXPECT_THAT(seen_.refusals, ElementsAre(HasSubstr("worker 0 (pid 0 on sim) sent a message")));
}

TEST_F(CoordinatorAcceptance, GoesOnWithoutItsEvaluatorWhichIsNoWorkerToTheOthers) {
  coordinate({.workers = 2, .evaluators = 1});
  std::vector<NodeId> lost;
  const auto train = [&](World& world, MemberLink& link) {
    try {
      world.transport().receive(NodeId{3}, Tag{100}, no_deadline);
    } catch (const PeerLost& loss) {
      lost.push_back(loss.peer());
    }
    world.sleep_for(std::chrono::seconds(1));
    EXPECT_THAT(link.lost(), IsEmpty());
    link.barrier();
  };
  add_worker(0, train);
  add_worker(1, train);
  add(evaluator_that([](World& world, MemberLink&) { world.sleep_for(std::chrono::hours(9)); }));
  simulation_.at(TimePoint(std::chrono::seconds(1)), [&] {
    simulation_.set_link(coordinator_node, NodeId{3}, {.latency = std::chrono::hours(1)});
  });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed) << "of the evaluator, which gets the news later";
  EXPECT_THAT(lost, ElementsAre(NodeId{3}, NodeId{3}));
  EXPECT_THAT(seen_.drops, ElementsAre(HasSubstr("the evaluator (pid 0 on sim) no longer")));
}

TEST_F(CoordinatorAcceptance, IntroducesANewEvaluatorToTheOthersAndTakesItsResults) {
  coordinate({.workers = 2, .evaluators = 1});
  std::vector<std::optional<NodeId>> known;
  std::uint64_t bytes = 0;
  const auto train = [&](World& world, MemberLink& link) {
    world.transport().post(NodeId{3}, Tag{100}, std::vector<std::byte>(1000));
    bytes = link.bytes_to_evaluators();
    for (const int seconds : {2, 2}) {
      world.sleep_for(std::chrono::seconds(seconds));
      known.push_back(link.evaluator());
    }
    EXPECT_EQ(world.transport().receive(NodeId{4}, Tag{100}, no_deadline).payload.size(), 3U);
    world.transport().post(NodeId{4}, Tag{100}, std::vector<std::byte>(500));
    EXPECT_EQ(link.bytes_to_evaluators(), bytes + 500 + sim::header_bytes);
    world.sleep_for(std::chrono::seconds(1));
  };
  add_worker(0, train);
  add_worker(1, train);
  add(evaluator_that([](World& world, MemberLink&) { world.sleep_for(std::chrono::hours(9)); }));
  simulation_.at(TimePoint(std::chrono::seconds(1)), [&] { simulation_.kill(NodeId{3}); });
  simulation_.at(TimePoint(std::chrono::seconds(3)), [&] {
    add(evaluator_that([](World& world, MemberLink& link) {
      EXPECT_EQ(link.view().number, 2U);
      for (const NodeId worker : link.view().nodes(Role::worker)) {
        world.transport().post(worker, Tag{100}, std::vector<std::byte>(3));
      }
      link.report(evaluation(0.5));
      world.sleep_for(std::chrono::seconds(3));
    }));
  });
  simulation_.run();
  EXPECT_THAT(known, ElementsAre(std::nullopt, std::nullopt, NodeId{4}, NodeId{4}));
  EXPECT_THAT(seen_.restarts, ElementsAre(NodeId{4}));
  EXPECT_THAT(seen_.drops, ElementsAre(HasSubstr("the evaluator (pid 0 on sim) died")));
  EXPECT_THAT(seen_.accuracies, ElementsAre(0.5));
  EXPECT_THAT(seen_.refusals, IsEmpty());
}

TEST_F(CoordinatorAcceptance, EndsAndTellsAnEvaluatorThatWaitsForSnapshotsThatNobodySends) {
  coordinate({.workers = 1, .evaluators = 1});
  std::string reason;
  add_worker(0, [](World& world, MemberLink&) { world.sleep_for(std::chrono::seconds(5)); });
  add(evaluator_that([&](World& world, MemberLink& link) {
    try {
      for (;;) {
        link.stands_by();
        world.sleep_for(MemberLink::stand_by_every);
      }
    } catch (const PeerLost& error) {
      reason = error.what();
      throw;
    }
  }));
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_THAT(reason, HasSubstr("the job goes on without the evaluator (pid 0 on sim) has made no "
                                "progress for 60 s after the last worker left"));
  EXPECT_GE(simulation_.now(), TimePoint(std::chrono::seconds(65)));
  EXPECT_LE(simulation_.now(), TimePoint(std::chrono::seconds(80)));
}

}  // namespace
}  // namespace syncopate
