// Goal:   a coordinator and its members carry out the decisions of the membership: a node that
//         enquires gets a slot and a description, both sides report a refusal, and a job goes on
//         without a worker.
// Method: small jobs in the simulator whose members follow a script; the test compares the messages
//         that each member and the coordinator's observer received.

#include "membership/coordinator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/errors.hpp"
#include "membership/enquiry.hpp"
#include "membership/member_link.hpp"
#include "sim/simulation.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Notes : public JobObserver {
 public:
  std::vector<std::string> refusals, drops, absences;
  std::function<void()> on_checkpoint = [] {};
  bool interrupted = false;

  std::optional<std::string> objection(const std::map<NodeId, wire::Join>&) override { return {}; }
  void refused(const std::string& reason) override { refusals.push_back(reason); }
  void awaiting(const std::string& absent) override { absences.push_back(absent); }
  void noted(const std::string&) override {}
  void view_installed(const View&) override {}
  void heartbeat_received(const Member&, const wire::Heartbeat&) override {}
  void evaluated(const wire::Evaluation&) override {}
  void checkpoint_written(const wire::Checkpoint&) override { on_checkpoint(); }
  void left(const Member&, const wire::Leave&) override {}
  void dropped(const Member&, const std::string& reason) override { drops.push_back(reason); }
  std::optional<std::string> reason_to_stop() override {
    return interrupted ? std::optional<std::string>("interrupted") : std::nullopt;
  }
  bool end_is_urgent() override { return interrupted; }
};

wire::Join join_of_worker(std::uint32_t index) {
  wire::Join join;
  join.set_role(wire::ROLE_WORKER);
  join.set_index(index);
  join.set_host("sim");
  join.set_pid(index);
  return join;
}

wire::Enquire any_worker() {
  wire::Enquire enquiry;
  enquiry.set_role(wire::ROLE_WORKER);
  enquiry.set_host("sim");
  return enquiry;
}

class CoordinatorTest : public testing::Test {
 protected:
  /// Adds the coordinator, node 0.
  void coordinate(const Membership::Options& options) {
    simulation_.add_node("coordinator", [this, options](World& world) {
      wire::JobDescription description;
      description.set_config("seed = 7\n");
      coordinator_ = &world;
      Coordinator(world, notes_, {.membership = options, .description = description}).run();
      ended_ = world.now();
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
      MemberLink link(world, {.join = join_of_worker(index)});
      link.join();
      link.barrier();
      work(world, link);
      link.leave({});
    });
  }

  World* coordinator_ = nullptr;  ///< null unless the coordinator runs
  TimePoint ended_{};             ///< end of the coordinator
  sim::Simulation simulation_{{.seed = 1}};
  Notes notes_;
};

TEST_F(CoordinatorTest, TellsWhatTheJobIsAndGivesTheSlotsOneByOne) {
  coordinate({.workers = 2, .evaluators = 0});
  std::vector<std::uint32_t> slots;
  const auto body = [&](World& world) {
    const auto job = enquire(world.transport(), any_worker(), no_deadline);
    EXPECT_EQ(job.config(), "seed = 7\n");
    slots.push_back(job.index());
    MemberLink link(world, {.join = join_of_worker(job.index())});
    EXPECT_EQ(link.join().members[job.index()].node, world.transport().self());
    link.leave({});
  };
  add(body);
  add(body);
  simulation_.run();
  EXPECT_THAT(slots, testing::UnorderedElementsAre(0U, 1U));
  EXPECT_THAT(notes_.refusals, IsEmpty());
}

TEST_F(CoordinatorTest, RefusesOnBothSidesAndGathersOn) {
  coordinate({.workers = 1, .evaluators = 0});
  std::string reason;
  add([](World& world) {
    enquire(world.transport(), any_worker(), no_deadline);
    world.sleep_for(std::chrono::seconds(2));
    MemberLink link(world, {.join = join_of_worker(0)});
    link.join();
    link.leave({});
  });
  add([&](World& world) {
    world.sleep_for(std::chrono::seconds(1));
    MemberLink link(world, {.join = join_of_worker(0)});
    try {
      link.join();
    } catch (const ConfigError& error) {
      reason = error.what();
    }
  });
  simulation_.run();
  EXPECT_EQ(reason, "worker 0 (pid 0 on sim) cannot join: its slot is taken by pid 0 on sim");
  EXPECT_THAT(notes_.refusals, ElementsAre(reason));
}

TEST_F(CoordinatorTest, AnEnquirerIsRefusedWithAReason) {
  coordinate({.workers = 1, .evaluators = 0});
  std::string reason;
  add_worker(0, [](World& world, MemberLink&) { world.sleep_for(std::chrono::seconds(2)); });
  add([&](World& world) {
    world.sleep_for(std::chrono::seconds(1));
    try {
      enquire(world.transport(), any_worker(), no_deadline);
    } catch (const ConfigError& error) {
      reason = error.what();
    }
  });
  simulation_.run();
  EXPECT_EQ(reason, "another worker (pid 0 on sim) cannot join: the job has already started");
}

TEST_F(CoordinatorTest, HearsWhyAnEnquirerDeclinesAndGivesItsSlotToAnother) {
  coordinate({.workers = 1, .evaluators = 0});
  add([](World& world) {
    enquire(world.transport(), any_worker(), no_deadline);
    decline(world, ConfigError("--network is mlp here, and lenet5 there"));
  });
  add([](World& world) {
    world.sleep_for(std::chrono::seconds(1));
    EXPECT_EQ(enquire(world.transport(), any_worker(), no_deadline).index(), 0U);
    MemberLink link(world, {.join = join_of_worker(0)});
    link.join();
    link.leave({});
  });
  simulation_.run();
  EXPECT_THAT(notes_.refusals,
              ElementsAre("worker 0 (pid 0 on sim): --network is mlp here, and lenet5 there"));
}

TEST_F(CoordinatorTest, TurnsAwayWhoSpeaksNonsense) {
  coordinate({.workers = 1, .evaluators = 0});
  add([](World& world) {
    world.transport().post(coordinator_node, tags::to_coordinator, {std::byte{0xff}});
    EXPECT_THROW(enquire(world.transport(), any_worker(), no_deadline), Error);
  });
  add([](World& world) {
    world.sleep_for(std::chrono::seconds(1));
    wire::Join join = join_of_worker(0);
    join.set_role(static_cast<wire::Role>(99));
    MemberLink link(world, {.join = join});
    EXPECT_THROW(link.join(), Error);
  });
  add([](World& world) {
    world.sleep_for(std::chrono::seconds(2));
    MemberLink link(world, {.join = join_of_worker(0)});
    link.join();
    link.leave({});
  });
  simulation_.run();
  EXPECT_THAT(notes_.refusals, ElementsAre(HasSubstr("node 1: "), HasSubstr("unknown role 99")));
}

TEST_F(CoordinatorTest, TellsWhomItIsWaitingFor) {
  coordinate({.workers = 1, .evaluators = 0});
  add([](World& world) {
    world.sleep_for(std::chrono::seconds(25));
    MemberLink link(world, {.join = join_of_worker(0)});
    link.join();
    link.leave({});
  });
  simulation_.run();
  EXPECT_THAT(notes_.absences, ElementsAre("worker 0", "worker 0"));
}

TEST_F(CoordinatorTest, EndsAsRequestedWhileItGathers) {
  coordinate({.workers = 2, .evaluators = 0});
  std::string reason;
  add([&](World& world) {
    MemberLink link(world, {.join = join_of_worker(0)});
    try {
      link.join();
    } catch (const Error& error) {
      reason = error.what();
    }
  });
  simulation_.at(TimePoint(std::chrono::seconds(3)), [&] { notes_.interrupted = true; });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_EQ(reason, "the job was ended while it waited for worker 1");
  EXPECT_LT(simulation_.now(), TimePoint(std::chrono::seconds(5)));
}

TEST_F(CoordinatorTest, ThatHangsIsNamedToItsMembers) {
  coordinate({.workers = 1, .evaluators = 0});
  std::string reason;
  add_worker(0, [&](World& world, MemberLink&) {
    try {
      world.sleep_for(std::chrono::hours(1));
    } catch (const TimedOut& error) {
      reason = error.what();
    }
  });
  simulation_.at(TimePoint(std::chrono::seconds(3)), [&] { simulation_.hang(coordinator_node); });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_EQ(reason,
            "the coordinator hangs: its main task has not gone on for 60 s, though its process "
            "lives");
  EXPECT_LT(simulation_.now(), TimePoint(std::chrono::seconds(67)));
}

TEST_F(CoordinatorTest, GoesOnWithoutAWorkerThatDied) {
  coordinate({.workers = 3, .evaluators = 0, .spares_workers = true});
  std::vector<wire::Dropped> heard;
  const auto listen = [&](World& world, MemberLink& link) {
    world.sleep_for(std::chrono::seconds(2));
    for (const wire::Dropped& dropped : link.take_dropped()) {
      heard.push_back(dropped);
    }
    EXPECT_THAT(link.take_dropped(), IsEmpty()) << "what was taken is gone";
  };
  add_worker(0, listen);
  add_worker(1, [](World& world, MemberLink&) { world.sleep_for(std::chrono::hours(1)); });
  add_worker(2, listen);
  simulation_.at(TimePoint(std::chrono::seconds(1)), [&] { simulation_.kill(NodeId{2}); });
  simulation_.run();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0].rank(), 1U);
  EXPECT_EQ(heard[0].node(), 2U);
  EXPECT_THAT(notes_.drops, ElementsAre(HasSubstr("worker 1 (pid 1 on sim) died; last heard")));
  EXPECT_LT(simulation_.now(), TimePoint(std::chrono::seconds(20)));
}

TEST_F(CoordinatorTest, NobodyWaitsForASilentWorkerThatWasDropped) {
  coordinate({.workers = 2, .evaluators = 0, .spares_workers = true});
  std::optional<NodeId> lost;
  TimePoint when{};
  add_worker(0, [&](World& world, MemberLink&) {
    try {
      world.transport().receive(NodeId{2}, Tag{100}, no_deadline);
    } catch (const PeerLost& loss) {
      lost = loss.peer();
    }
    when = world.now();
  });
  add_worker(1, [](World& world, MemberLink&) { world.sleep_for(std::chrono::hours(9)); });
  simulation_.at(TimePoint(std::chrono::seconds(1)), [&] {
    simulation_.set_link(coordinator_node, NodeId{2}, {.latency = std::chrono::hours(1)});
  });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_EQ(lost, NodeId{2});
  EXPECT_LT(when, TimePoint(std::chrono::seconds(30)));
  EXPECT_THAT(notes_.drops, ElementsAre(HasSubstr("worker 1 (pid 1 on sim) no longer answers")));
}

TEST_F(CoordinatorTest, ItsEndWaitsForNoWorkerThatWasDropped) {
  coordinate({.workers = 2, .evaluators = 0, .spares_workers = true});
  TimePoint last{};
  add_worker(0, [&](World& world, MemberLink&) {
    world.sleep_for(std::chrono::minutes(2));
    last = world.now();
  });
  add_worker(1, [](World& world, MemberLink&) { world.sleep_for(std::chrono::hours(9)); });
  simulation_.at(TimePoint(std::chrono::seconds(1)),
                 [&] { simulation_.set_link(coordinator_node, NodeId{2}, {.bandwidth = 1.0}); });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_EQ(notes_.drops.size(), 1U);
  EXPECT_LT(ended_ - last, std::chrono::seconds(1));
}

TEST_F(CoordinatorTest, HoldsItsOwnAbsencesAgainstNobody) {
  notes_.on_checkpoint = [this] { coordinator_->sleep_for(std::chrono::seconds(40)); };
  coordinate({.workers = 3, .evaluators = 0, .spares_workers = true});
  add_worker(0, [](World& world, MemberLink& link) {
    for (int evaluation = 0; evaluation < 3; ++evaluation) {
      world.sleep_for(std::chrono::seconds(15));
      link.report(wire::Checkpoint());
    }
    world.sleep_for(std::chrono::minutes(3));
  });
  for (const std::uint32_t rank : {1, 2}) {
    add_worker(rank, [](World& world, MemberLink&) { world.sleep_for(std::chrono::minutes(3)); });
  }
  simulation_.run();
  EXPECT_THAT(notes_.drops, IsEmpty());
}

TEST_F(CoordinatorTest, MissesAWorkerThatFellSilentInItsAbsence) {
  notes_.on_checkpoint = [this] { coordinator_->sleep_for(std::chrono::seconds(40)); };
  coordinate({.workers = 2, .evaluators = 0, .spares_workers = true});
  TimePoint when{};
  add_worker(0, [&](World& world, MemberLink& link) {
    link.report(wire::Checkpoint());
    EXPECT_TRUE(link.await_more(0, no_deadline));
    when = world.now();
  });
  add_worker(1, [](World& world, MemberLink&) { world.sleep_for(std::chrono::hours(9)); });
  simulation_.at(TimePoint(std::chrono::seconds(20)), [&] {
    simulation_.set_link(coordinator_node, NodeId{2}, {.latency = std::chrono::hours(1)});
  });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_THAT(notes_.drops, ElementsAre(HasSubstr("worker 1 (pid 1 on sim) no longer answers")));
  EXPECT_GT(when, TimePoint(std::chrono::seconds(50))) << "10 s after its return";
  EXPECT_LT(when, TimePoint(std::chrono::seconds(51)));
}

LongWait wait_for_worker_1(Duration waited) {
  return {.ranks = {Rank{1}},
          .operation = "allgather",
          .waited = waited,
          .limit = std::chrono::seconds(60)};
}

TEST_F(CoordinatorTest, AnswersOnItsReturnAWaitThatWasReportedInItsAbsence) {
  notes_.on_checkpoint = [this] { coordinator_->sleep_for(std::chrono::seconds(50)); };
  coordinate({.workers = 2, .evaluators = 0});
  add_worker(0, [](World& world, MemberLink& link) {
    link.report(wire::Checkpoint());
    world.sleep_for(std::chrono::seconds(1));
    EXPECT_GT(link.report_wait(wait_for_worker_1(std::chrono::seconds(40))), Duration::zero());
    EXPECT_GT(world.now(), TimePoint(std::chrono::seconds(50)));
  });
  add_worker(1, [](World& world, MemberLink&) { world.sleep_for(std::chrono::minutes(61)); });
  simulation_.run();
}

TEST_F(CoordinatorTest, AnswersEachOfTheWaitsThatAWorkerReportsAtOnce) {
  coordinate({.workers = 2, .evaluators = 0});
  std::vector<Duration> more(2);
  add_worker(0, [&](World& world, MemberLink& link) {
    world.sleep_for(std::chrono::seconds(100));
    const auto other = world.spawn(
        "other", [&] { more[1] = link.report_wait(wait_for_worker_1(std::chrono::seconds(40))); });
    more[0] = link.report_wait(wait_for_worker_1(std::chrono::seconds(99)));
    other->join();
  });
  add_worker(1, [](World& world, MemberLink& link) {
    wire::Heartbeat status;
    status.set_computing(true);
    status.set_expected_seconds(100);
    link.set_status_source([status] { return status; });
    world.sleep_for(std::chrono::seconds(200));
  });
  simulation_.run();
  EXPECT_THAT(more, testing::Each(std::chrono::seconds(30)));
}

TEST_F(CoordinatorTest, EndsAReportedWaitForAWorkerThatMakesNoProgress) {
  coordinate({.workers = 2, .evaluators = 0});
  std::string reason;
  add_worker(0, [&](World& world, MemberLink& link) {
    try {
      for (;;) {
        world.sleep_for(link.report_wait(wait_for_worker_1(std::chrono::seconds(60))));
      }
    } catch (const TimedOut& error) {
      reason = error.what();
    }
  });
  add_worker(1, [](World& world, MemberLink& link) {
    wire::Heartbeat status;
    status.set_phase("backward");
    status.set_computing(true);
    link.set_status_source([status] { return status; });
    for (int i = 0; i < 100; ++i) {
      world.sleep_for(std::chrono::seconds(1));
      link.progressed();
    }
    world.sleep_for(std::chrono::hours(1));
  });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_THAT(reason, HasSubstr("for worker 1 (pid 1 on sim), last heard"));
  EXPECT_GE(simulation_.now(), TimePoint(std::chrono::seconds(700)));
  EXPECT_LE(simulation_.now(), TimePoint(std::chrono::seconds(740)));
}

TEST_F(CoordinatorTest, GoesOnWithoutAWorkerThatFailedAndTellsIt) {
  coordinate({.workers = 2, .evaluators = 0, .spares_workers = true});
  std::string reason;
  add_worker(0, [](World& world, MemberLink&) { world.sleep_for(std::chrono::seconds(1)); });
  add_worker(1, [&](World&, MemberLink& link) {
    try {
      throw Error("out of memory");
    } catch (const Error& error) {
      try {
        link.fail(error);
      } catch (const PeerLost& answer) {
        reason = answer.what();
        throw;
      }
    }
  });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  ASSERT_EQ(simulation_.failures().size(), 1U);
  EXPECT_EQ(simulation_.failures()[0].node(), NodeId{2});
  EXPECT_EQ(reason, "the job goes on without worker 1 (pid 1 on sim): out of memory");
  EXPECT_THAT(notes_.drops, ElementsAre("worker 1 (pid 1 on sim): out of memory"));
}

TEST_F(CoordinatorTest, AGradientThatIsNoNumberEndsTheJobEverywhere) {
  coordinate({.workers = 2, .evaluators = 0, .spares_workers = true});
  std::string reason;
  add_worker(0, [&](World& world, MemberLink&) {
    try {
      world.sleep_for(std::chrono::hours(1));
    } catch (const NotFinite& error) {
      reason = error.what();
    }
  });
  add_worker(1, [](World&, MemberLink& link) {
    try {
      throw NotFinite("step 3: the loss is nan");
    } catch (const NotFinite& error) {
      link.fail(error);
    }
  });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_EQ(reason, "worker 1 (pid 1 on sim): step 3: the loss is nan");
}

TEST_F(CoordinatorTest, AMemberThatOutlivesLostPeersHearsOfTheEndOfTheJob) {
  coordinate({.workers = 2, .evaluators = 0});
  std::string reason;
  add_worker(0, [&](World& world, MemberLink& link) {
    for (int tries = 0; reason.empty() && tries < 100; ++tries) {
      try {
        world.transport().receive(std::nullopt, Tag{100}, world.now() + std::chrono::seconds(1));
      } catch (const Error&) {
        // No message came, or a peer was lost; neither ends this member.
      }
      try {
        link.check();
      } catch (const PeerLost& loss) {
        reason = loss.what();
      }
    }
  });
  add_worker(1, [](World& world, MemberLink&) { world.sleep_for(std::chrono::hours(1)); });
  simulation_.at(TimePoint(std::chrono::seconds(5)), [&] { simulation_.kill(NodeId{2}); });
  EXPECT_THROW(simulation_.run(), sim::NodeFailed);
  EXPECT_THAT(reason, HasSubstr("worker 1 (pid 1 on sim) died"));
}

TEST_F(CoordinatorTest, BarriersArePassedByWhoeverComesAfterTheirRelease) {
  coordinate({.workers = 1, .servers = 1, .evaluators = 0});
  add_worker(0, [](World&, MemberLink& link) { link.barrier(); });
  add([](World& world) {
    wire::Join join = join_of_worker(0);
    join.set_role(wire::ROLE_SERVER);
    MemberLink link(world, {.join = join});
    link.join();
    world.sleep_for(std::chrono::seconds(1));
    link.barrier();
    link.barrier();
    link.leave({});
  });
  simulation_.run();
  EXPECT_LT(simulation_.now(), TimePoint(std::chrono::minutes(1)));
}

}  // namespace
}  // namespace syncopate
