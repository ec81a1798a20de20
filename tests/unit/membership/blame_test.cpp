// Goal:   a member that hangs is notified of it while it still hangs, and no other member is.
// Method: a small job in the simulator; the test compares the messages that its members receive.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "membership/coordinator.hpp"
#include "membership/member_link.hpp"
#include "membership/membership.hpp"
#include "sim/simulation.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class Quiet : public JobObserver {
 public:
  std::optional<std::string> objection(const std::map<NodeId, wire::Join>&) override { return {}; }
  void refused(const std::string&) override {}
  void awaiting(const std::string&) override {}
  void noted(const std::string&) override {}
  void view_installed(const View&) override {}
  void heartbeat_received(const Member&, const wire::Heartbeat&) override {}
  void evaluated(const wire::Evaluation&) override {}
  void checkpoint_written(const wire::Checkpoint&) override {}
  void left(const Member&, const wire::Leave&) override {}
  void dropped(const Member&, const std::string&) override {}
  std::optional<std::string> reason_to_stop() override { return {}; }
};

wire::Join join_as(std::uint32_t index) {
  wire::Join join;
  join.set_role(wire::ROLE_WORKER);
  join.set_index(index);
  join.set_host("sim");
  join.set_pid(index);
  return join;
}

TEST(Blame, ReachesTheMemberThatHangsBeforeItsNodeIsCancelled) {
  for (const bool spares : {true, false}) {
    SCOPED_TRACE(spares);
    sim::Simulation simulation{{.seed = 1}};
    Quiet observer;
    std::vector<std::string> events;
    simulation.add_node("coordinator", [&](World& world) {
      Coordinator(world, observer,
                  {.membership = {.workers = 2, .evaluators = 0, .spares_workers = spares}})
          .run();
    });
    for (const std::uint32_t index : {0, 1}) {
      simulation.add_node("worker", [&, index](World& world) {
        world.transport().introduce(coordinator_node, sim::address_of(coordinator_node));
        MemberLink link(world,
                        {.join = join_as(index), .blamed = [&, index](const std::string& reason) {
                           events.push_back(fmt::format("{} blamed: {}", index, reason));
                         }});
        link.join();
        wire::Heartbeat heartbeat;
        heartbeat.set_computing(index == 1);
        heartbeat.set_expected_seconds(0.5);
        link.set_status_source([heartbeat] { return heartbeat; });
        link.barrier();
        const auto task = world.spawn("task", [&] {
          try {
            world.sleep_for(std::chrono::hours(1));
          } catch (const Error&) {
            events.push_back(fmt::format("{} cancelled", index));
          }
        });
        link.receive_standing_by(NodeId{2 - index}, Tag{100});
      });
    }
    EXPECT_THROW(simulation.run(), sim::NodeFailed);
    std::erase(events, "0 cancelled");
    EXPECT_THAT(events, ElementsAre(StartsWith("1 blamed: "), "1 cancelled"));
    EXPECT_THAT(events.front(),
                HasSubstr("worker 1 (pid 1 on sim) hangs: last heard 0.0 s ago, in start-up"));
  }
}

}  // namespace
}  // namespace syncopate
