// Goal:   rounds of asynchronous workers hold the differences between totals, and the requests of
//         the worker.
// Method: hand-made replies of a server, and a shared model in plain memory.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "scheme/server_scheme.hpp"
#include "scheme/shared_model.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

Reply reply_of(std::uint64_t version, std::uint64_t samples, double loss_sum, Duration paused) {
  Reply reply;
  reply.version = version;
  reply.samples = samples;
  reply.loss_sum = loss_sum;
  reply.paused = paused;
  return reply;
}

TEST(ServerRounds, HoldTheDifferencesOfReplies) {
  ServerRounds rounds(reply_of(10, 640, 100, 1s));
  const SyncRound first = rounds.next(reply_of(12, 768, 130, 3s), {.evaluate = true});
  EXPECT_EQ(first.round, Round{12});
  EXPECT_EQ(first.samples, 128U);
  EXPECT_EQ(first.loss_sum, 30);
  EXPECT_EQ(first.paused, Duration(2s));
  EXPECT_EQ(first.agreed, (StepRequests{.stop = false, .evaluate = true, .checkpoint = false}));
  const SyncRound second = rounds.next(reply_of(13, 800, 131, 3s), {});
  EXPECT_EQ(second.round, Round{13});
  EXPECT_EQ(second.samples, 32U);
  EXPECT_EQ(second.paused, Duration::zero());
}

/// Only the time that the worker waited counts as a pause: it may have computed at the beginning of
/// the server's pause.
TEST(Spent, IsWithoutThePauseOfAServer) {
  const auto left = [](Duration pause) {
    Spent spent{.update = 1s, .communicate = 3s, .wait = 2s};
    spent.take_off(pause);
    EXPECT_EQ(spent.update, Duration(1s));
    return std::pair(spent.communicate, spent.wait);
  };
  EXPECT_EQ(left(0s), std::pair(Duration(3s), Duration(2s)));
  EXPECT_EQ(left(2s), std::pair(Duration(1s), Duration(2s)));
  EXPECT_EQ(left(4s), std::pair(Duration(0s), Duration(1s)));
  EXPECT_EQ(left(9s), std::pair(Duration(0s), Duration(0s)));
}

TEST(SharedModelRounds, HoldTheDifferencesOfCounters) {
  const SharedModel::Size size{.params = 2, .buffers = 0, .workers = 2};
  std::vector<std::byte> memory(SharedModel::bytes_for(size));
  SharedModel model(memory, size);
  model.load(std::vector<float>(2), {.updates = 5, .samples = 80, .loss_sum = 8});
  SharedModelRounds rounds(model, model.counts());
  model.count(16, 2);
  model.count(32, 3);
  const SyncRound round = rounds.next({.paused = 1s, .requests = {.stop = true}});
  EXPECT_EQ(round.round, Round{7});
  EXPECT_EQ(round.samples, 48U);
  EXPECT_EQ(round.loss_sum, 5);
  EXPECT_EQ(round.paused, Duration(1s));
  EXPECT_TRUE(round.agreed.stop);
  EXPECT_EQ(rounds.next({}).samples, 0U);
}

TEST(SyncRound, AddsTheWorkOfAnEarlierRound) {
  SyncRound latest{.round = Round{2},
                   .samples = 10,
                   .loss_sum = 1,
                   .own = OwnContribution{.steps = 2, .samples = 4}};
  latest.add_work_of({.round = Round{1},
                      .samples = 20,
                      .loss_sum = 3,
                      .own = OwnContribution{.steps = 1, .samples = 6}});
  EXPECT_EQ(latest.round, Round{2});
  EXPECT_EQ(latest.samples, 30U);
  EXPECT_EQ(latest.loss_sum, 4);
  EXPECT_EQ(latest.own->steps, 3U);
  EXPECT_EQ(latest.own->samples, 10U);
}

}  // namespace
}  // namespace syncopate
