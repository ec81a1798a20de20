// Goal:   a group of programs whose collective has failed does not go on out of step; a receive
//         from any member goes on while one of them is left.
// Method: groups in the simulator's virtual time; members that come late or leave; closed values.
#include "job/program/program_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "collective/basic_collectives.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

using Said = std::vector<std::string>;

/// Runs `body` on the members of a group.
std::vector<Said> said_by_all(std::uint32_t size, const std::function<Said(ProgramGroup&)>& body,
                              Duration wait_limit = 1s) {
  return on_every_rank<Said>(size, [&](Group& all) {
    std::vector<NodeId> members;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      members.push_back(all.node(Rank{rank}));
    }
    ProgramGroup group(
        all.world(),
        {.members = members, .self = all.rank(), .wait_limit = wait_limit, .number = 1});
    return body(group);
  });
}

std::string sum_of(ProgramGroup& group, float value) {
  try {
    group.run({.kind = "allreduce"},
              [&](ProgramGroup& of) { of.allreduce().reduce(std::span(&value, 1)); });
    return std::to_string(static_cast<int>(value));
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ProgramGroup, SumsNothingOfAnEarlierCollectiveAfterOneThatHasFailed) {
  const auto said = said_by_all(2, [](ProgramGroup& group) {
    World& world = group.group().world();
    const float own = group.rank() == Rank{0} ? 1 : 2;
    if (group.rank() == Rank{1}) {
      world.sleep_for(1500ms);
    }
    const Said sums{sum_of(group, own), sum_of(group, 10 * own)};
    world.sleep_for(1min);  // its end is no loss for the other
    return sums;
  });
  EXPECT_THAT(said[0],
              ElementsAre(AllOf(HasSubstr("waited 1.0 s"), HasSubstr("rank 1")), said[0][0]));
  EXPECT_NE(said[1][1], "3");
  EXPECT_NE(said[1][1], "30");
}

/// What a member gets for two collectives of bytes, of which the first is `call` for it.
Said ends_of(ProgramGroup& group, const CollectiveCall& call,
             const std::function<void(ProgramGroup&)>& collective) {
  Said ends;
  for (const bool first : {true, false}) {
    try {
      group.run(
          first ? call : CollectiveCall{.kind = "barrier"},
          first ? collective : [](ProgramGroup& of) { barrier(of.group()); });
      ends.emplace_back("done");
    } catch (const ConfigError& error) {
      ends.emplace_back(error.what());
    }
  }
  group.group().world().sleep_for(1min);  // of simulated time: its end is no loss for the other
  return ends;
}

TEST(ProgramGroup, RefusesBytesThatMembersTakeForValuesOfSeveralTypes) {
  const auto said = said_by_all(
      3,
      [](ProgramGroup& group) {
        const std::string type = group.rank() == Rank{1} ? "int32" : "float32";
        std::array<std::byte, 8> mine{};
        std::array<std::byte, 24> all{};
        return ends_of(group, {.kind = "allgather", .type = "bytes", .count = 8, .of_type = type},
                       [&](ProgramGroup& of) { allgather(of.group(), mine, all); });
      },
      10s);
  for (const Said& ends : said) {
    EXPECT_THAT(ends, testing::Each(AllOf(HasSubstr("allgather of 8 bytes of float32"),
                                          HasSubstr("worker 1 "),
                                          HasSubstr("allgather of 8 bytes of int32"))));
  }
}

/// Each of two roots waits for nobody, so both come to the next collective.
TEST(ProgramGroup, RefusesSeveralRoots) {
  const auto said = said_by_all(
      2,
      [](ProgramGroup& group) {
        const Rank root = group.rank();
        std::array<std::byte, 8> bytes{};
        return ends_of(group,
                       {.kind = "broadcast", .type = "bytes", .count = 8, .root = root.value},
                       [&](ProgramGroup& of) { broadcast(of.group(), bytes, root); });
      },
      10s);
  for (const Said& ends : said) {
    EXPECT_THAT(ends[1], AllOf(HasSubstr("worker 0 calls broadcast of 8 bytes with root 0"),
                               HasSubstr("worker 1 broadcast of 8 bytes with root 1")));
  }
}

std::string receipt_of(ProgramGroup& group) {
  std::array<std::byte, 1> byte{};
  try {
    const auto receive = group.receive_any(/*tag=*/0, byte);
    receive->wait();
    return std::to_string(std::to_integer<int>(byte[0])) + " of " +
           std::to_string(receive->source()->value);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
    return "done";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ProgramGroup, NamesTheWorkerThatHasLeftBeforeTheFirstCollective) {
  const auto said = said_by_all(2, [](ProgramGroup& group) {
    if (group.rank() == Rank{1}) {
      return Said{};
    }
    group.group().world().sleep_for(500ms);
    return Said{error_of([&] { group.meet(); }), error_of([&] { group.largest(1); })};
  });
  EXPECT_THAT(said[0], Each(HasSubstr("worker 1 has left the job or ended")));
}

TEST(ProgramGroup, KeepsTheWordsOfTheCoordinatorAboutALostMember) {
  const auto said = said_by_all(2, [](ProgramGroup& group) {
    if (group.rank() == Rank{1}) {
      return Said{};
    }
    group.group().world().cancel(
        std::make_exception_ptr(MemberLost(NodeId{1}, "worker 1 no longer answers")));
    return Said{error_of([&] { group.meet(); })};
  });
  EXPECT_THAT(said[0], ElementsAre("worker 1 no longer answers"));
}

TEST(ProgramGroup, ReceivesFromAnyMemberThatIsLeft) {
  const auto said = said_by_all(3, [](ProgramGroup& group) {
    const std::uint32_t rank = group.rank().value;
    if (rank == 0) {
      return Said{receipt_of(group), receipt_of(group), receipt_of(group)};
    }
    group.group().world().sleep_for(500ms * (rank - 1));
    const auto byte = static_cast<std::byte>(10 * rank);
    group.send(Rank{0}, /*tag=*/0, std::span(&byte, 1));
    return Said{};
  });
  EXPECT_THAT(said[0], ElementsAre("10 of 1", "20 of 2", HasSubstr("has left the job or ended")));
}

}  // namespace
}  // namespace syncopate
