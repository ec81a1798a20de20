// Goal:   sleeping, tasks, events and cancellation behave the same in every world.
// Method: one or two nodes whose tasks synchronize through events; each test compares the
//         observations, their order and the error. Times are compared with the world's own clock
//         only.

#include <gmock/gmock.h>

#include <atomic>
#include <exception>
#include <mutex>

#include "base/errors.hpp"
#include "tests/contract/contract_cluster.hpp"
#include "tests/contract/payload.hpp"
#include "transport/tags.hpp"

namespace syncopate::contract {
namespace {

constexpr Tag data = tags::allgather;

std::exception_ptr reason() {
  return std::make_exception_ptr(Cancelled("called off"));
}

TEST_P(WorldContract, SleepLastsUntilItsTime) {
  cluster->run(1, [](World& world) {
    const TimePoint before = world.now();
    world.sleep_for(std::chrono::milliseconds(5));
    const TimePoint after = world.now();
    EXPECT_GE(after - before, std::chrono::milliseconds(5));
    world.sleep_until(before);
    EXPECT_GE(world.now(), after) << "the clock never goes back";
  });
}

TEST_P(WorldContract, JoinReturnsWhenTheTaskHasEnded) {
  cluster->run(1, [](World& world) {
    int result = 0;
    const auto task = world.spawn("adder", [&] {
      world.sleep_for(std::chrono::milliseconds(1));
      result = 42;
    });
    task->join();
    EXPECT_EQ(result, 42);
    EXPECT_NO_THROW(task->join());
  });
}

TEST_P(WorldContract, JoinThrowsWhatEndedTheTaskOnce) {
  cluster->run(1, [](World& world) {
    const auto task = world.spawn("failing", [] { throw DataError("no such file"); });
    try {
      task->join();
      ADD_FAILURE() << "join did not throw";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "no such file");
    }
    EXPECT_NO_THROW(task->join());
  });
}

TEST_P(WorldContract, DestroyingATaskWaitsForItsEnd) {
  cluster->run(1, [](World& world) {
    bool ended = false;
    world.spawn("slow", [&] {
      world.sleep_for(std::chrono::milliseconds(2));
      ended = true;
    });
    EXPECT_TRUE(ended);
    world.spawn("failing", [] { throw DataError("nobody asks"); });
  });
}

TEST_P(WorldContract, TasksSpawnTasks) {
  cluster->run(1, [](World& world) {
    std::atomic<int> leaves = 0;
    const std::function<void(int)> grow = [&](int depth) {
      if (depth == 0) {
        ++leaves;
        return;
      }
      const auto left = world.spawn("left", [&grow, depth] { grow(depth - 1); });
      const auto right = world.spawn("right", [&grow, depth] { grow(depth - 1); });
      left->join();
      right->join();
    };
    grow(5);
    EXPECT_EQ(leaves, 32);
  });
}

TEST_P(WorldContract, EventsWakeTasksInTurn) {
  cluster->run(1, [](World& world) {
    const auto ping = world.make_event();
    const auto pong = world.make_event();
    std::mutex guard;
    std::string said;
    const auto say = [&](char mark) {
      const std::lock_guard lock(guard);
      said += mark;
    };
    const auto player = world.spawn("pong", [&] {
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(ping->wait(soon(world)));
        say('o');
        pong->notify();
      }
    });
    for (int i = 0; i < 3; ++i) {
      say('i');
      ping->notify();
      EXPECT_TRUE(pong->wait(soon(world)));
    }
    player->join();
    EXPECT_EQ(said, "ioioio");
  });
}

TEST_P(WorldContract, ANotificationWithNobodyWaitingIsKeptOnce) {
  cluster->run(1, [](World& world) {
    const auto event = world.make_event();
    event->notify();
    event->notify();
    EXPECT_TRUE(event->wait(soon(world)));
    const TimePoint deadline = shortly(world);
    EXPECT_FALSE(event->wait(deadline));
    EXPECT_GE(world.now(), deadline);
    event->notify();
    EXPECT_TRUE(event->wait(world.now())) << "kept, even though the deadline is now";
  });
}

/// Waits until `peer` has ended, so that `peer` cannot notice the end of this node.
void outlive(World& world, NodeId peer) {
  EXPECT_THROW(world.transport().receive(peer, data, soon(world)), PeerLost);
}

TEST_P(WorldContract, CancelWakesEveryBlockedTask) {
  cluster->run(2, [](World& world) {
    const NodeId peer{1 - world.transport().self().value};
    if (peer == NodeId{0}) {
      return outlive(world, peer);
    }
    const auto event = world.make_event();
    Bytes into(10);
    const std::vector<std::function<void()>> blocking{
        [&] { world.sleep_until(no_deadline); },
        [&] { event->wait(no_deadline); },
        [&] { world.transport().receive(peer, data, no_deadline); },
        [&] { world.transport().receive(std::nullopt, data, no_deadline); },
        [&] { receive_into(world.transport(), peer, data, into, no_deadline); },
        [&] { world.spawn("inner", [&] { world.sleep_until(no_deadline); })->join(); },
    };
    std::vector<std::unique_ptr<Task>> tasks;
    for (const auto& body : blocking) {
      tasks.push_back(world.spawn("blocked", body));
    }
    world.sleep_for(std::chrono::milliseconds(1));
    world.cancel(reason());
    world.cancel(std::make_exception_ptr(InternalError("not the first")));
    for (const auto& task : tasks) {
      EXPECT_THROW(task->join(), Cancelled);
    }
  });
}

TEST_P(WorldContract, CancelEndsWhatBeginsLater) {
  cluster->run(2, [](World& world) {
    const NodeId peer{1 - world.transport().self().value};
    if (peer == NodeId{0}) {
      return outlive(world, peer);
    }
    const auto event = world.make_event();
    event->notify();
    world.cancel(reason());
    EXPECT_THROW(world.sleep_for(std::chrono::hours(1)), Cancelled);
    EXPECT_THROW(event->wait(no_deadline), Cancelled);
    EXPECT_THROW(world.transport().receive(peer, data, no_deadline), Cancelled);
  });
}

TEST_P(WorldContract, CancelTouchesNoOtherNode) {
  cluster->run(2, [](World& world) {
    if (world.transport().self().value == 0) {
      post_text(world, NodeId{1}, data, "still here");
      world.cancel(reason());
    } else {
      EXPECT_EQ(receive_text(world, NodeId{0}, data), "still here");
      EXPECT_NO_THROW(world.sleep_for(std::chrono::milliseconds(1)));
    }
  });
}

/// Its destructor blocks the task while an exception unwinds the stack.
class BlocksWhenDestroyed {
 public:
  explicit BlocksWhenDestroyed(World& world) : world_(world) {}
  BlocksWhenDestroyed(const BlocksWhenDestroyed&) = delete;
  BlocksWhenDestroyed& operator=(const BlocksWhenDestroyed&) = delete;
  ~BlocksWhenDestroyed() {
    EXPECT_EQ(std::uncaught_exceptions(), 1);
    world_.sleep_for(std::chrono::microseconds(10));
    EXPECT_EQ(std::uncaught_exceptions(), 1);
  }

 private:
  World& world_;
};

/// Throws an exception and blocks while the stack unwinds and again in the handler. Other tasks
/// throw in the meantime; expects that this task still rethrows its own exception.
void throw_and_block(World& world, const std::string& text) {
  try {
    try {
      const BlocksWhenDestroyed guard(world);
      throw DataError(text);
    } catch (const DataError&) {
      world.sleep_for(std::chrono::microseconds(10));
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      throw;
    }
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(), text);
  }
}

TEST_P(WorldContract, TasksMayBlockWhileTheyHandleExceptions) {
  cluster->run(2, [](World& world) {
    std::vector<std::unique_ptr<Task>> tasks;
    for (int number = 0; number < 4; ++number) {
      tasks.push_back(world.spawn("thrower", [&world, number] {
        for (int i = 0; i < 20; ++i) {
          throw_and_block(world, std::to_string(number * 100 + i));
        }
      }));
    }
    for (const auto& task : tasks) {
      task->join();
    }
  });
}

}  // namespace
}  // namespace syncopate::contract
