// Goal:   requests and replies arrive unchanged, and bytes that are neither are refused.
// Method: round trips with every field set; truncated bytes and kinds that do not exist.

#include "server/messages.hpp"

#include <gtest/gtest.h>

#include "base/errors.hpp"

namespace syncopate {
namespace {

TEST(ServerMessages, RequestsArriveAsTheyWereSent) {
  const Request request{.kind = Request::Kind::verdict,
                        .push = true,
                        .pull = true,
                        .step = 1ULL << 40,
                        .samples = 64,
                        .loss_sum = -0.5,
                        .weight = 0.25F,
                        .ranks = {Rank{3}, Rank{0}}};
  EXPECT_EQ(decode_request(encode(request)), request);
  EXPECT_EQ(decode_request(encode(Request{})), Request{});
}

TEST(ServerMessages, RepliesArriveAsTheyWereSent) {
  const Reply reply{.kind = Reply::Kind::held,
                    .dropped = true,
                    .version = 7,
                    .samples = 1ULL << 50,
                    .loss_sum = 1e9,
                    .staleness = 12,
                    .steps = 5,
                    .training = std::chrono::hours(100),
                    .paused = std::chrono::nanoseconds(1),
                    .ranks = {Rank{1}}};
  EXPECT_EQ(decode_reply(encode(reply)), reply);
  EXPECT_EQ(decode_reply(encode(Reply{})), Reply{});
}

TEST(ServerMessages, WhatIsNoneIsRefused) {
  std::vector<std::byte> bytes = encode(Request{.ranks = {Rank{1}}});
  bytes.pop_back();
  EXPECT_THROW(decode_request(bytes), ProtocolError);
  EXPECT_THROW(decode_request({}), ProtocolError);
  EXPECT_THROW(decode_reply(std::vector<std::byte>(63)), ProtocolError);
  EXPECT_THROW(decode_reply(std::vector<std::byte>(64)), ProtocolError);  // of kind 0
  bytes = encode(Reply{});
  bytes[56] = std::byte{99};
  EXPECT_THROW(decode_reply(bytes), ProtocolError);
}

}  // namespace
}  // namespace syncopate
