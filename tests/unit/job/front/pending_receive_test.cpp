// Goal:   one thread waits for a receive while others look whether it is done; a receive that has
//         ended by its limit holds nothing.
// Method: a look that is under way until the waiting thread has asked the clock; a count of owners.
#include "job/program/pending_receive.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

/// Counts how often it was asked.
class CountingClock final : public Clock {
 public:
  TimePoint now() const override {
    ++asked;
    return TimePoint(1s);
  }

  mutable std::atomic<int> asked = 0;
};

TEST(PendingReceive, MayBeLookedAtWhileAnotherThreadWaits) {
  const CountingClock clock;
  std::atomic<bool> looks = false;
  std::atomic<bool> waits = false;
  PendingReceive receive(clock, 10s, [&](TimePoint) -> std::optional<Rank> {
    if (waits) {
      return Rank{4};
    }
    looks = true;
    const int asked = clock.asked;
    while (clock.asked == asked) {  // until the other thread is in `wait_for`
      std::this_thread::yield();
    }
    waits = true;
    return std::nullopt;
  });
  std::thread looking([&] { EXPECT_FALSE(receive.done()); });
  while (!looks) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(receive.wait_for(5s));
  EXPECT_EQ(receive.source(), Rank{4});
  looking.join();
}

TEST(PendingReceive, IsWaitedForByOneThread) {
  const CountingClock clock;
  PendingReceive* self = nullptr;
  PendingReceive receive(clock, 10s, [&](TimePoint) -> std::optional<Rank> {
    std::thread second([&] { EXPECT_THROW(self->wait_for(5s), ConfigError); });
    second.join();
    return Rank{0};
  });
  self = &receive;
  EXPECT_TRUE(receive.wait_for(5s));
}

/// Each look takes a second.
class SteppingClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::seconds(++asked_)); }

 private:
  mutable std::atomic<int> asked_ = 0;
};

TEST(PendingReceive, HoldsNothingAfterItsLimit) {
  const SteppingClock clock;
  const auto transfer = std::make_shared<int>(0);
  PendingReceive receive(clock, 3s, [transfer](TimePoint) { return std::optional<Rank>(); });
  EXPECT_THROW(receive.wait(), TimedOut);
  EXPECT_EQ(transfer.use_count(), 1);
  EXPECT_THROW(receive.wait(), TimedOut);
  EXPECT_EQ(receive.source(), std::nullopt);
}

}  // namespace
}  // namespace syncopate
