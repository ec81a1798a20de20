// Goal:   the state of a server's shard is received as it was sent, and a damaged state is refused
//         with an error that says what is wrong.
// Method: a round trip of a state with slots and counters; the same bytes with one wrong digit.

#include "checkpoint/shard_states.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/errors.hpp"

namespace syncopate {
namespace {

ShardState some_state() {
  ShardState state{.params = {1, 2.5, -3}, .buffers = {7}, .rest = {}};
  state.rest.slots["momentum"] = {0.5, 0.25, 0};
  state.rest.counters["steps"] = 1234567890123;
  state.rest.counters["samples"] = 0;
  return state;
}

TEST(ShardMessages, ArriveAsTheyWereSent) {
  const ShardState sent = some_state();
  const ShardState received = decode_state(encode_state(sent));
  EXPECT_EQ(received.params, sent.params);
  EXPECT_EQ(received.buffers, sent.buffers);
  EXPECT_EQ(received.rest.slots, sent.rest.slots);
  EXPECT_EQ(received.rest.counters, sent.rest.counters);
}

TEST(ShardMessages, RefuseACounterThatIsNoNumber) {
  std::vector<std::byte> bytes = encode_state(some_state());
  const std::string digits = "1234567890123";
  const auto found =
      std::search(bytes.begin(), bytes.end(), digits.begin(), digits.end(),
                  [](std::byte byte, char digit) { return byte == std::byte(digit); });
  ASSERT_NE(found, bytes.end());
  found[3] = std::byte('x');
  try {
    decode_state(bytes);
    FAIL() << "a damaged counter was taken";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "the state of a server's shard: expected a whole number as counter steps, found "
                 "'123x567890123'");
  }
}

}  // namespace
}  // namespace syncopate
