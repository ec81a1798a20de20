// Goal:   a node accepts only messages that its role may receive, under known tags, and up to the
//         size limit of each tag.
// Method: the test queries the limits of a coordinator and of a member for every kind of tag.

#include "transport/payload_limits.hpp"

#include <gtest/gtest.h>

namespace syncopate::contract {
namespace {

constexpr NodeId member{3};
constexpr std::uint64_t most = std::uint64_t{1} << 32;
constexpr std::uint64_t control = 16 << 20;

constexpr PayloadLimits limits_of(NodeId self, bool control_only = false) {
  return {.self = self, .message_bytes = most, .control_only = control_only};
}

TEST(PayloadLimits, ControlMessagesGoToAndFromTheCoordinator) {
  EXPECT_EQ(limits_of(coordinator_node).of(tags::to_coordinator, member), control);
  EXPECT_EQ(limits_of(member).of(tags::from_coordinator, coordinator_node), control);
  EXPECT_EQ(limits_of(member).of(tags::from_coordinator, NodeId{4}), std::nullopt);
  EXPECT_EQ(limits_of(member).of(tags::to_coordinator, NodeId{4}), std::nullopt);
}

TEST(PayloadLimits, MessagesOfValuesMayBeLarge) {
  for (const Tag tag : tags::large) {
    for (const Tag variant : {tag, tags::beside(tag), tags::of_generation(tag, 7),
                              tags::of_generation(tags::beside(tag), 7)}) {
      EXPECT_EQ(limits_of(member).of(variant, NodeId{4}), most) << variant.value;
    }
  }
}

TEST(PayloadLimits, MessagesOfAFewNumbersMayNot) {
  for (const Tag tag : tags::small) {
    EXPECT_EQ(limits_of(member).of(tag, NodeId{4}), std::uint64_t{1} << 20) << tag.value;
  }
}

TEST(PayloadLimits, NobodyTakesUnknownTags) {
  for (const std::uint32_t tag : {0, 3, 15, 23, 37, 100, 129, 257, 258, 1'000'000}) {
    EXPECT_EQ(limits_of(member).of(Tag{tag}, coordinator_node), std::nullopt) << tag;
  }
}

TEST(PayloadLimits, TheCoordinatorOfAJobTakesControlMessagesAlone) {
  const PayloadLimits limits = limits_of(coordinator_node, true);
  EXPECT_EQ(limits.of(tags::to_coordinator, member), control);
  for (const Tag tag : tags::large) {
    EXPECT_EQ(limits.of(tag, member), std::nullopt) << tag.value;
  }
  for (const Tag tag : tags::small) {
    EXPECT_EQ(limits.of(tag, member), std::nullopt) << tag.value;
  }
}

TEST(PayloadLimits, NoTagMayExceedTheLimitOfAllMessages) {
  const PayloadLimits limits{.self = member, .message_bytes = 1000};
  EXPECT_EQ(limits.of(tags::parts, NodeId{4}), 1000U);
  EXPECT_EQ(limits.of(tags::from_coordinator, coordinator_node), 1000U);
}

}  // namespace
}  // namespace syncopate::contract
