// Goal:   collectives of a group involve only its workers and run concurrently with those of other
//         groups; messages between workers arrive in order, whether send or receive comes first;
//         impossible calls are refused, and no worker waits for one that has left.
// Method: programs that are threads; closed values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <limits>
#include <optional>
#include <thread>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// Number of values in a message that is too long for a send to copy.
constexpr std::size_t many = 100'000;

template <class Program>
void expect_no_errors(std::uint32_t programs, const Program& program) {
  const auto errors = ThreadedPrograms(programs).run([&](const JobEntry& entry) {
    Job job({.entry = entry});
    program(job);
    job.barrier();  // so that no worker leaves while another one waits
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(GroupsTest, AreCountedByTheirOwnRanks) {
  expect_no_errors(4, [](Job& job) {
    if (job.rank() != 2) {
      Group three = job.open_group({0, 1, 3});
      EXPECT_EQ(three.size(), 3U);
      EXPECT_EQ(three.rank(), job.rank() == 3 ? 2 : job.rank());
      std::vector<double> values{1.0 * job.rank(), 1};
      three.allreduce(values);
      EXPECT_THAT(values, ElementsAre(4, 3));
      std::vector<int> last{static_cast<int>(job.rank())};
      three.broadcast(last, 2);
      EXPECT_THAT(last, ElementsAre(3));
    }
  });
}

/// Worker 1 has a collective under way in its group with worker 0 and in its group with worker 2.
/// Worker 0 calls its collective only after worker 2 has called its own.
TEST(GroupsTest, GoOnBesideEachOther) {
  expect_no_errors(3, [](Job& job) {
    std::optional<Group> low;
    std::optional<Group> high;
    if (job.rank() != 2) {
      low = job.open_group({0, 1});
    }
    if (job.rank() != 0) {
      high = job.open_group({1, 2});
    }
    std::vector<float> first(many, 1);
    std::vector<float> second(many, 10);
    if (job.rank() == 1) {
      CollectiveWork of_low = low->allreduce_async(first);
      high->allreduce(second);  // ends before worker 0 has called its allreduce
      job.barrier();
      of_low.wait();
      EXPECT_THAT(first, Each(2));
    } else {
      if (job.rank() == 2) {
        high->allreduce(second);
      }
      job.barrier();
      if (job.rank() == 0) {
        low->allreduce(first);
      }
    }
    EXPECT_THAT(job.rank() == 0 ? first : second, Each(job.rank() == 0 ? 2 : 20));
  });
}

TEST(GroupsTest, HaveNumbersThatAllMembersAgreeOn) {
  expect_no_errors(3, [](Job& job) {
    // Workers 0 and 1 have opened more groups than worker 2 when all open one together.
    for (int i = 0; i < 5 && job.rank() != 2; ++i) {
      std::vector<float> ones{1};
      job.open_group({0, 1}).allreduce(ones);
      EXPECT_THAT(ones, ElementsAre(2));
    }
    std::vector<float> ones{1};
    job.open_group({0, 1, 2}).allreduce(ones);
    EXPECT_THAT(ones, ElementsAre(3));
  });
}

TEST(GroupsTest, ReduceByEveryOperation) {
  expect_no_errors(3, [](Job& job) {
    Group all = job.everyone();
    const auto reduced = [&](syncopate_operation operation) {
      std::vector<std::int32_t> value{static_cast<std::int32_t>(job.rank()) + 5};  // 5, 6, 7
      all.allreduce(value, operation);
      return value[0];
    };
    EXPECT_EQ(reduced(SYNCOPATE_SUM), 18);
    EXPECT_EQ(reduced(SYNCOPATE_PRODUCT), 210);
    EXPECT_EQ(reduced(SYNCOPATE_MIN), 5);
    EXPECT_EQ(reduced(SYNCOPATE_MAX), 7);
    EXPECT_EQ(reduced(SYNCOPATE_BIT_AND), 4);
    EXPECT_EQ(reduced(SYNCOPATE_BIT_OR), 7);
    EXPECT_EQ(reduced(SYNCOPATE_BIT_XOR), 4);
    std::vector<float> to_one{1};
    all.reduce(to_one, 1);
    EXPECT_THAT(to_one, ElementsAre(job.rank() == 1 ? 3 : 1));
    EXPECT_THAT(all.reduce_scatter(std::vector<float>{1, 2, 3}, SYNCOPATE_PRODUCT),
                ElementsAre(job.rank() == 0   ? 1
                            : job.rank() == 1 ? 8
                                              : 27));
  });
}

TEST(GroupsTest, PassBlocksAround) {
  expect_no_errors(3, [](Job& job) {
    syncopate_group* const all = job.everyone().handle();
    const auto rank = static_cast<std::uint8_t>(job.rank());
    std::array<std::uint8_t, 3> gathered{};
    ASSERT_EQ(
        syncopate_gather(all, &rank, 1, job.rank() == 1 ? gathered.data() : nullptr, 1, nullptr),
        SYNCOPATE_OK);
    EXPECT_EQ(gathered[2], job.rank() == 1 ? 2 : 0);
    const std::array<std::uint8_t, 3> parts{7, 8, 9};
    std::uint8_t part = 0;
    ASSERT_EQ(
        syncopate_scatter(all, job.rank() == 2 ? parts.data() : nullptr, 1, &part, 2, nullptr),
        SYNCOPATE_OK);
    EXPECT_EQ(part, 7 + rank);
    // Worker s sends s + 1 bytes to each.
    const std::vector<std::uint8_t> own(3 * (rank + 1U), rank);
    const std::array<std::size_t, 3> to{rank + 1U, rank + 1U, rank + 1U};
    const std::array<std::size_t, 3> from{1, 2, 3};
    std::array<std::uint8_t, 6> received{};
    ASSERT_EQ(syncopate_alltoall(all, own.data(), to.data(), received.data(), from.data(), nullptr),
              SYNCOPATE_OK);
    EXPECT_THAT(received, ElementsAre(0, 1, 1, 2, 2, 2));
  });
}

TEST(SendTest, ArrivesInOrderUnderEachTag) {
  expect_no_errors(2, [](Job& job) {
    Group all = job.everyone();
    if (job.rank() == 0) {
      for (std::uint32_t i = 0; i < 10; ++i) {
        all.send(&i, sizeof i, 1, i % 2);
      }
    } else {
      std::vector<std::uint32_t> found(10);
      for (std::uint32_t i = 0; i < 10; ++i) {  // the odd ones first
        all.receive(&found[i], sizeof found[i], 0, i < 5 ? 1 : 0);
      }
      EXPECT_THAT(found, ElementsAre(1, 3, 5, 7, 9, 0, 2, 4, 6, 8));
    }
  });
}

/// Both workers begin to receive before either sends.
TEST(SendTest, ToEachOtherAtTheSameTime) {
  for (const std::size_t count : {std::size_t{1}, many}) {
    expect_no_errors(2, [&](Job& job) {
      Group all = job.everyone();
      const std::uint32_t other = 1 - job.rank();
      const std::vector<float> own(count, static_cast<float>(job.rank()));
      std::vector<float> found(count, -1);
      CollectiveWork receive = all.receive_async(found.data(), count * sizeof(float), other);
      EXPECT_FALSE(receive.done());
      job.barrier();
      CollectiveWork send = all.send_async(own.data(), count * sizeof(float), other);
      receive.wait();
      EXPECT_TRUE(receive.done());
      EXPECT_EQ(receive.source(), other);
      send.wait();
      EXPECT_TRUE(send.done());
      EXPECT_THAT(found, Each(static_cast<float>(other)));
    });
  }
}

TEST(SendTest, OfAnotherSizeIsRefusedByItsReceiver) {
  expect_no_errors(2, [](Job& job) {
    Group all = job.everyone();
    std::array<std::byte, 8> bytes{};
    if (job.rank() == 0) {
      all.send(bytes.data(), 8, 1);
    } else {
      try {
        all.receive(bytes.data(), 4, 0);
        ADD_FAILURE() << "4 of 8 bytes were received";
      } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "a receive of 4 bytes from worker 0 got 8");
      }
    }
    job.barrier();
  });
}

TEST(SendTest, ToWhoeverReceivesFromAny) {
  expect_no_errors(3, [](Job& job) {
    Group all = job.everyone();
    if (job.rank() == 1) {
      std::array<std::uint32_t, 3> found{};
      for (int i = 0; i < 2; ++i) {
        std::uint32_t value = 0;
        CollectiveWork receive = all.receive_async(&value, sizeof value, SYNCOPATE_ANY, 9);
        receive.wait();
        found.at(receive.source()) = value;
      }
      EXPECT_THAT(found, ElementsAre(100, 0, 102));
    } else {
      const std::uint32_t value = 100 + job.rank();
      all.send(&value, sizeof value, 1, 9);
    }
  });
}

TEST(GroupsTest, ThatAreImpossibleAreRefused) {
  expect_no_errors(2, [](Job& job) {
    EXPECT_THAT(refusal([&] { job.open_group({0, 1, 0}); }), HasSubstr("each once"));
    EXPECT_THAT(refusal([&] { job.open_group({0, 1, 2}); }), HasSubstr("below 2"));
    EXPECT_THAT(refusal([&] { job.open_group({1 - job.rank()}); }), HasSubstr("among them"));
    EXPECT_THAT(refusal([&] { job.open_group({0, 1}, -1); }), HasSubstr("wait_seconds"));
    EXPECT_THAT(refusal([&] { job.open_group({}); }), EndsWith("among them, found none"));
    Group all = job.everyone();
    std::vector<float> value{1};
    EXPECT_THAT(refusal([&] { all.broadcast(value, 2); }), HasSubstr("root 2"));
    EXPECT_THAT(refusal([&] { all.send(value.data(), 4, job.rank()); }), HasSubstr("itself"));
    EXPECT_THAT(refusal([&] { all.send(value.data(), 4, 5); }), HasSubstr("no worker"));
    EXPECT_THAT(refusal([&] { all.receive(value.data(), 4, 1 - job.rank(), 4096); }),
                HasSubstr("from 0 to 4095, found 4096"));
    EXPECT_THAT(refusal([&] { all.allreduce(value, SYNCOPATE_BIT_OR); }), HasSubstr("integers"));
    EXPECT_THAT(refusal([&] { all.allreduce_async(value, SYNCOPATE_BIT_OR); }),
                HasSubstr("integers"));
  });
}

/// The total length of the blocks of two workers overflows std::size_t.
TEST(GroupsTest, GoOnAfterLengthsThatNoMemoryHas) {
  expect_no_errors(2, [](Job& job) {
    Group all = job.everyone();
    std::vector<float> value{1};
    float found = 0;
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    constexpr std::size_t half = most / 2 + 1;  // twice that is 0
    EXPECT_THAT(refusal([&] { all.allreduce(value.data(), most, SYNCOPATE_FLOAT32); }),
                HasSubstr("found a length of 18446744073709551615 times 4;"));
    void* const memory = value.data();
    EXPECT_THAT(refusal([&] { all.broadcast(memory, most); }), StartsWith("memory has"));
    EXPECT_THAT(refusal([&] { all.allgather(value.data(), half, &found); }),
                StartsWith("memory has"));
    const std::array<std::size_t, 2> bytes{half - 2, 2};
    EXPECT_EQ(
        syncopate_alltoall(all.handle(), value.data(), bytes.data(), &found, bytes.data(), nullptr),
        SYNCOPATE_CONFIG_ERROR);
    EXPECT_THAT(syncopate_last_error(), HasSubstr("found a length of 2 behind "));
    EXPECT_EQ(syncopate_reduce_scatter(all.handle(), value.data(), &found, half, SYNCOPATE_INT8,
                                       SYNCOPATE_SUM, nullptr),
              SYNCOPATE_CONFIG_ERROR);
    all.allreduce(value);
    EXPECT_THAT(value, ElementsAre(2));
  });
}

TEST(GroupsTest, RefuseTwoThreadsAtOnce) {
  std::promise<int> barriers_of_worker_0;
  expect_no_errors(2, [&](Job& job) {
    Group all = job.open_group({0, 1});
    int barriers = 0;
    std::thread other;
    if (job.rank() == 0) {
      std::vector<CollectiveWork> passed;
      other = std::thread([&] {  // blocks in a barrier until worker 1 calls it
        while (refusal([&] { all.barrier(); }) != "no ConfigError") {
        }
      });
      std::string message = "no ConfigError";
      while (message == "no ConfigError") {
        message = refusal([&] { passed.push_back(all.barrier_async()); });
      }
      EXPECT_THAT(message, HasSubstr("two threads use this group at the same time"));
      barriers_of_worker_0.set_value(static_cast<int>(passed.size()) + 1);
      other.join();
    } else {
      barriers = barriers_of_worker_0.get_future().get();
    }
    for (; barriers > 0; --barriers) {
      all.barrier();
    }
  });
}

TEST(GroupsTest, OfOneWorker) {
  Job job;
  Group one = job.open_group({0});
  std::vector<std::int64_t> values{3, 4};
  one.allreduce(values, SYNCOPATE_PRODUCT);
  one.reduce(values);
  one.broadcast(values);
  one.barrier();
  EXPECT_THAT(values, ElementsAre(3, 4));
  EXPECT_THAT(one.reduce_scatter(values), ElementsAre(3, 4));
  EXPECT_THAT(one.allgather(values), ElementsAre(3, 4));
  const std::array<std::size_t, 1> bytes{16};
  std::vector<std::int64_t> found(2);
  ASSERT_EQ(syncopate_alltoall(one.handle(), values.data(), bytes.data(), found.data(),
                               bytes.data(), nullptr),
            SYNCOPATE_OK);
  EXPECT_EQ(found, values);
  EXPECT_THAT(refusal([&] { one.receive(values.data(), 8, SYNCOPATE_ANY); }), HasSubstr("nobody"));
  EXPECT_THAT(refusal([&] { job.open_group({}); }), EndsWith("among them, found none"));
}

TEST(GroupsTest, NameWhoHasNotComeWithinTheirLimit) {
  expect_no_errors(3, [](Job& job) {
    Group all = job.open_group({0, 1, 2}, 0.2);
    if (job.rank() != 1) {
      try {
        all.barrier();
        ADD_FAILURE() << "worker 1 has not come";
      } catch (const TimedOut& error) {
        EXPECT_THAT(error.what(),
                    AllOf(StartsWith("barrier: waited 0."), HasSubstr("for rank 1 (pid ")));
      }
    }
  });
}

TEST(GroupsTest, SayThatWorkHasEndedByAnError) {
  const auto errors = ThreadedPrograms(2).run([](const JobEntry& entry) {
    Job job(InitOptions{.entry = entry});
    job.barrier();
    if (entry.rank == 1) {
      return;
    }
    syncopate_work* lost = nullptr;
    ASSERT_EQ(syncopate_barrier(job.everyone().handle(), &lost), SYNCOPATE_OK);
    EXPECT_NE(syncopate_work_wait(lost), SYNCOPATE_OK);
    int ended = 0;
    EXPECT_NE(syncopate_work_wait_for(lost, 0, &ended), SYNCOPATE_OK);
    EXPECT_EQ(ended, 1);
    syncopate_work_free(lost);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Worker 0 closes the group before worker 1 has called the collectives.
TEST(GroupsTest, AreClosedOnceAllThatWasBegunHasEnded) {
  expect_no_errors(2, [](Job& job) {
    std::optional<Group> both = job.open_group({0, 1});
    std::array<std::vector<float>, 4> values;
    values.fill(std::vector<float>(many, 1.0F));
    std::vector<CollectiveWork> works;
    const auto begin_all = [&] {
      for (std::vector<float>& each : values) {
        works.push_back(both->allreduce_async(each));
      }
    };
    if (job.rank() == 0) {
      begin_all();
      job.barrier();
    } else {
      job.barrier();
      begin_all();
    }
    both.reset();
    for (std::size_t number = 0; number < values.size(); ++number) {
      EXPECT_TRUE(works[number].done());
      works[number].wait();
      EXPECT_THAT(values[number], Each(2.0F));
    }
  });
}

/// When a program leaves, its collectives and receives that are under way end with an error.
TEST(GroupsTest, EndWithTheJob) {
  const auto errors = ThreadedPrograms(2).run([](const JobEntry& entry) {
    std::optional<Job> job(InitOptions{.entry = entry});
    Group all = job->open_group({0, 1});
    std::vector<float> values(many);
    job->barrier();
    if (entry.rank == 0) {
      CollectiveWork receive = all.receive_async(values.data(), 4, 1);
      CollectiveWork under_way = all.barrier_async();
      job.reset();
      EXPECT_THROW(under_way.wait(), Error);
      EXPECT_THROW(receive.wait(), Error);
      EXPECT_THROW(all.barrier(), Error);
    } else {
      EXPECT_THROW(job->barrier(), Error);
    }
  });
  EXPECT_EQ(errors[0], "");
}

}  // namespace
}  // namespace syncopate::test
