// Goal:   the coordinator of programs ends a job in which a program no longer answers before any
//         training has begun, or does not reach the others, and only then.
// Method: programs in the simulator's virtual time, of which one sends no heartbeats from some time
//         on, or leaves; the error that the other one gets.
#include "job/program/program_host.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/errors.hpp"
#include "membership/member_link.hpp"
#include "sim/sim_transport.hpp"
#include "sim/simulation.hpp"
#include "transport/tags.hpp"
#include "wire/control.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

wire::ToCoordinator hello(std::uint32_t rank, World& world) {
  world.transport().introduce(coordinator_node, sim::address_of(coordinator_node));
  Member who;
  who.rank = Rank{rank};
  who.host = "c3";
  who.pid = 4710 + rank;
  who.address = world.transport().address();
  wire::ToCoordinator message;
  message.mutable_program_hello()->set_size(2);
  *message.mutable_program_hello()->mutable_who() = to_wire(who);
  return message;
}

std::string error_within(World& world, Duration time) {
  try {
    world.sleep_for(time);
    return "none";
  } catch (const Error& error) {
    return error.what();
  }
}

void post(World& world, const wire::ToCoordinator& message) {
  world.transport().post(coordinator_node, tags::to_coordinator, wire::encode(message));
}

/// What ends a job of two programs within an hour, of which worker 1, once it has come, does this.
std::string end_of_job(const std::function<void(World&)>& of_worker_1) {
  std::string end;
  sim::Simulation simulation({.seed = 1});
  simulation.add_node("host", [](World& world) {
    ProgramHost::Options options;
    options.programs = 2;
    options.wait_limit = 50s;
    try {
      ProgramHost(world, options).run();
    } catch (const Error&) {  // the programs get it
      world.transport().close(world.now() + 1s);
    }
  });
  simulation.add_node("worker 0", [&](World& world) {
    MemberLink link(world, {.stays = true});
    link.send(hello(0, world));
    link.listen();
    end = error_within(world, 1h);
  });
  simulation.add_node("worker 1", [&](World& world) {
    post(world, hello(1, world));
    of_worker_1(world);
  });
  simulation.run();
  return end;
}

std::function<void(World&)> sends_heartbeats_for(Duration alive) {
  return [alive](World& world) {
    wire::ToCoordinator heartbeat;
    heartbeat.mutable_heartbeat();
    for (const TimePoint until = world.now() + alive; world.now() < until; world.sleep_for(1s)) {
      post(world, heartbeat);
    }
    error_within(world, 1h);
  };
}

TEST(ProgramHost, EndsAJobOneOfWhoseProgramsNoLongerAnswers) {
  EXPECT_EQ(end_of_job(sends_heartbeats_for(1min)),
            "worker 1 (pid 4711 on c3) no longer answers; last heard 50.0 s ago");
  EXPECT_EQ(end_of_job(sends_heartbeats_for(1h)), "none");
}

/// Worker 0 would wait for it in `init`.
TEST(ProgramHost, EndsAJobOneOfWhoseProgramsLeavesBeforeItHasMetTheOthers) {
  const auto leaves = [](World& world) {
    world.sleep_for(1s);  // both have come by then
    world.transport().close(world.now() + 1s);
  };
  EXPECT_EQ(end_of_job(leaves), "worker 1 (pid 4711 on c3) has ended before training began");
  EXPECT_EQ(end_of_job([&](World& world) {
              wire::ToCoordinator message;
              message.mutable_met();
              post(world, message);
              leaves(world);
            }),
            "none");
}

TEST(ProgramHost, EndsAJobOneOfWhoseProgramsReachesNotAllOthers) {
  EXPECT_EQ(end_of_job([](World& world) {
              wire::ToCoordinator message;
              message.mutable_abort()->set_reason("worker 0 is not there");
              post(world, message);
              error_within(world, 1h);
            }),
            "worker 0 is not there");
}

}  // namespace
}  // namespace syncopate
