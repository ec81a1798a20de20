// Goal:   steps, decisions and speed shares travel between workers and the pacer as control
//         messages.
// Method: a `PacerLink` over a link that keeps the messages sent, and a `PacerService` in the
//         simulator whose only worker records the messages that it receives.

#include "pacer/pacer_control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "sim/simulation.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Kind = wire::FromCoordinator::BodyCase;

class KeepingLink : public ControlLink {
 public:
  void send(const wire::ToCoordinator& message) override { sent.push_back(message); }
  void on(Kind kind, Handler handler) override { handlers[kind] = std::move(handler); }

  std::vector<wire::ToCoordinator> sent;
  std::map<Kind, Handler> handlers;
};

wire::FromCoordinator pace_message(std::uint64_t round, std::uint64_t meet_after,
                                   std::uint32_t step_samples) {
  wire::FromCoordinator message;
  message.mutable_pace()->set_round(round);
  message.mutable_pace()->set_meet_after(meet_after);
  message.mutable_pace()->set_step_samples(step_samples);
  return message;
}

TEST(PacerLink, SendsTheFieldsOfAStepReport) {
  KeepingLink link;
  PacerLink pacer(link);
  pacer.report({.round = 3,
                .steps = 2,
                .samples = 64,
                .took = 500ms,
                .synchronizes = true,
                .communicated = 250ms,
                .samples_to_do = 6000,
                .ends = true});
  ASSERT_EQ(link.sent.size(), 1U);
  const wire::Stepped& stepped = link.sent[0].stepped();
  EXPECT_EQ(stepped.round(), 3U);
  EXPECT_EQ(stepped.steps(), 2U);
  EXPECT_EQ(stepped.samples(), 64U);
  EXPECT_DOUBLE_EQ(stepped.seconds(), 0.5);
  EXPECT_TRUE(stepped.meets());
  EXPECT_DOUBLE_EQ(stepped.communicated_seconds(), 0.25);
  EXPECT_EQ(stepped.samples_to_do(), 6000U);
  EXPECT_TRUE(stepped.ends());
}

TEST(PacerLink, KeepsTheLastRoundThatAnOrderNamed) {
  KeepingLink link;
  PacerLink pacer(link);
  EXPECT_EQ(pacer.order().step_samples, 0U);
  link.handlers[Kind::kPace](pace_message(2, 5, 32));
  link.handlers[Kind::kPace](pace_message(3, 0, 16));
  const PaceOrder order = pacer.order();
  EXPECT_EQ(order.round, 2U);
  EXPECT_EQ(order.sync_after, 5U);
  EXPECT_EQ(order.step_samples, 16U);
}

TEST(PacerLink, RemovesItsHandlerAtItsEnd) {
  KeepingLink link;
  { const PacerLink pacer(link); }
  EXPECT_FALSE(link.handlers.at(Kind::kPace));
}

class Notes : public PaceObserver {
 public:
  std::vector<std::string> events;

  void paced(const PacerState&) override {}
  void pace_decided(const Pace& pace, Duration) override {
    events.push_back("decided " + std::string(words_for(pace.reason)));
  }
  void stepped(Rank, const StepReport& report) override {
    events.push_back("stepped " + std::to_string(report.steps));
  }
};

Member worker_at(NodeId node) {
  Member member;
  member.node = node;
  return member;
}

wire::ToCoordinator first_step() {
  wire::ToCoordinator message;
  message.mutable_stepped()->set_round(1);
  message.mutable_stepped()->set_steps(1);
  message.mutable_stepped()->set_samples(32);
  message.mutable_stepped()->set_seconds(0.1);
  message.mutable_stepped()->set_meets(true);
  return message;
}

/// Returns options for one worker, node 1, under the paper's rule.
Pacer::Options one_worker() {
  return {.batch_sizes = {32}, .rule = PaceRule::paper};
}

TEST(PacerService, SendsTheDecisionsThatFollowFromAStep) {
  sim::Simulation simulation({.seed = 1});
  Notes notes;
  simulation.add_node("coordinator", [&](World& world) {
    world.transport().introduce(NodeId{1}, sim::address_of(NodeId{1}));
    PacerService service(world, notes, one_worker());
    const Member worker = worker_at(NodeId{1});
    service.view_installed({.number = 1, .members = {worker}});
    EXPECT_TRUE(service.handle(worker, first_step()));
    world.sleep_for(1s);
  });
  std::uint64_t round = 0;
  simulation.add_node("worker", [&](World& world) {
    world.transport().introduce(coordinator_node, sim::address_of(coordinator_node));
    const Message message =
        world.transport().receive(coordinator_node, tags::from_coordinator, no_deadline);
    round = wire::decode_from_coordinator(message.payload).pace().round();
  });
  simulation.run();
  EXPECT_EQ(round, 2U);
  EXPECT_THAT(notes.events, ElementsAre("decided first round", "stepped 1", "decided slowest"));
}

TEST(PacerService, LeavesMessagesOfOthersAlone) {
  sim::Simulation simulation({.seed = 1});
  Notes notes;
  simulation.add_node("coordinator", [&](World& world) {
    PacerService service(world, notes, one_worker());
    const Member worker = worker_at(NodeId{1});
    service.view_installed({.number = 1, .members = {worker}});
    EXPECT_FALSE(service.handle(worker, {}));
    Member server = worker;
    server.role = Role::server;
    EXPECT_FALSE(service.handle(server, first_step())) << "only workers are paced";
    EXPECT_THROW(service.handle(worker,
                                [] {
                                  wire::ToCoordinator message = first_step();
                                  message.mutable_stepped()->set_round(7);
                                  return message;
                                }()),
                 ProtocolError);
  });
  simulation.run();
  EXPECT_THAT(notes.events, ElementsAre("decided first round"));
}

TEST(PacerService, PutsItsMemoryIntoTheMessageOfARestart) {
  sim::Simulation simulation({.seed = 1});
  Notes notes;
  simulation.add_node("coordinator", [&](World& world) {
    PacerService service(world, notes, one_worker());
    wire::Released released;
    service.before_restart(released);
    EXPECT_EQ(released.pacer().workers_size(), 1);
    wire::Arrived arrived;
    arrived.mutable_pacer()->add_workers();
    arrived.mutable_pacer()->add_workers();
    EXPECT_THROW(service.arrived(worker_at(NodeId{1}), arrived), ConfigError)
        << "a checkpoint of two workers";
  });
  simulation.run();
}

}  // namespace
}  // namespace syncopate
