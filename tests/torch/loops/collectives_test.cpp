// Goal:   collectives of tensors and spans give the documented results, for every type, whether the
//         caller waits or not, and end with an error if a program has left.
// Method: programs that are threads, and a single one; closed values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::HasSubstr;

TEST(CollectivesTest, OfTensorsOnThreeWorkers) {
  const auto errors = ThreadedPrograms(3).run([](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    const auto rank = static_cast<float>(entry.rank);
    const torch::Tensor sum = torch::full({2, 3}, rank + 1);
    job.allreduce(sum);
    EXPECT_TRUE(sum.equal(torch::full({2, 3}, 6.0F)));
    const torch::Tensor columns = torch::full({3, 2}, rank + 1).t();  // not contiguous
    job.allreduce(columns);
    EXPECT_TRUE(columns.equal(torch::full({2, 3}, 6.0F)));
    const torch::Tensor whole =
        torch::full({4}, static_cast<std::int64_t>(entry.rank) + 7, torch::kInt64);
    job.broadcast(whole);
    EXPECT_TRUE(whole.equal(torch::full({4}, 7, torch::kInt64)));
    const auto all = job.allgather(torch::full({2}, rank));
    ASSERT_EQ(all.size(), 3U);
    EXPECT_TRUE(all[2].equal(torch::full({2}, 2.0F)));
    job.barrier();
    EXPECT_THAT(refusal([&] { job.allreduce(torch::ones({2}, torch::kInt16)); }),
                HasSubstr("takes tensors of Float, Double, Half, BFloat16, Char, Byte, Int or "
                          "Long, found Short"));
    Linear net;
    torch::NoGradGuard no_grad;
    net.layer->bias.fill_(rank);
    job.broadcast_parameters(net);
    EXPECT_TRUE(net.layer->bias.equal(torch::zeros({3})));
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(CollectivesTest, OfEveryTypeThatCanBeReduced) {
  const auto errors = ThreadedPrograms(2).run([](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kInt32, torch::kInt64,
                            torch::kBFloat16, torch::kFloat16, torch::kInt8, torch::kUInt8}) {
      const torch::Tensor sum = torch::arange(5).mul(static_cast<int>(entry.rank) + 1).to(type);
      job.allreduce(sum);
      EXPECT_TRUE(sum.equal(torch::arange(5).mul(3).to(type))) << torch::toString(type);
    }
    std::vector<double> values{0.5, static_cast<double>(entry.rank)};
    job.allreduce(values);
    EXPECT_EQ(values, (std::vector<double>{1, 1}));
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Collectives run in the order of the calls, including blocking calls.
TEST(CollectivesTest, ThatNobodyWaitsFor) {
  const auto errors = ThreadedPrograms(3).run([](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    std::vector<TensorWork> sums;
    for (int i = 0; i < 50; ++i) {
      sums.push_back(job.allreduce_async(torch::full({3, 2}, i).t().to(torch::kFloat64)));
    }
    const torch::Tensor first = torch::full({2}, static_cast<float>(entry.rank) + 5);
    TensorWork broadcast = job.broadcast_async(first);
    job.barrier();  // runs after all of them
    EXPECT_TRUE(broadcast.done());
    EXPECT_TRUE(broadcast.wait().equal(torch::full({2}, 5.0F)));
    EXPECT_TRUE(first.equal(torch::full({2}, 5.0F)));
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(sums[i].done());
      EXPECT_TRUE(sums[i].wait().equal(torch::full({2, 3}, 3.0 * i, torch::kFloat64)));
      EXPECT_TRUE(sums[i].wait().equal(torch::full({2, 3}, 3.0 * i, torch::kFloat64)));
    }
    TensorWork all = job.allgather_async(torch::full({2}, static_cast<int>(entry.rank)));
    EXPECT_TRUE(all.wait().equal(torch::tensor({{0, 0}, {1, 1}, {2, 2}})));
    CollectiveWork last = job.barrier_async();
    last.wait();
    EXPECT_TRUE(last.done());
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

/// A collective that cannot end gets an error, and so does one that is queued behind it.
TEST(CollectivesTest, OfAProgramThatHasLeft) {
  const auto errors = ThreadedPrograms(2).run([](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    job.barrier();
    if (entry.rank == 1) {
      return;
    }
    std::vector<float> values(3);
    CollectiveWork lost = job.allreduce_async(values);
    CollectiveWork behind = job.barrier_async();
    EXPECT_THROW(lost.wait(), Error);
    EXPECT_THROW(lost.wait(), Error);
    EXPECT_THROW(behind.wait(), Error);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Repeats the test, since the two programs may or may not be connected yet when one leaves.
TEST(CollectivesTest, OfAProgramThatLeftAtOnce) {
  for (int i = 0; i < 20; ++i) {
    const auto errors = ThreadedPrograms(2).run([](const JobEntry& entry) {
      TorchJob job = init({.entry = entry});
      if (entry.rank == 0) {
        EXPECT_THROW(job.barrier(), Error);
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
  }
}

TEST(CollectivesTest, UnderWayWhenTheProgramLeaves) {
  CollectiveWork under_way;
  CollectiveWork behind;
  std::vector<float> values(3);
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    job.barrier();
    if (entry.rank == 0) {
      under_way = job.allreduce_async(values);  // the other program never calls it
      behind = job.barrier_async();
    } else {
      std::array<std::byte, 1> byte{};
      job.broadcast(byte);
    }
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_NE(errors[1], "");
  EXPECT_THROW(under_way.wait(), Error);
  EXPECT_THROW(behind.wait(), Error);
}

TEST(CollectivesTest, OfTensorsWithoutValuesOfTheirOwn) {
  TorchJob job = init();
  const torch::Tensor expanded = torch::ones({1, 3}).expand({2, 3});
  for (const auto& collective : std::vector<std::function<void(const torch::Tensor&)>>{
           [&](const torch::Tensor& tensor) { job.allreduce(tensor); },
           [&](const torch::Tensor& tensor) { job.broadcast(tensor); },
           [&](const torch::Tensor& tensor) { job.allgather(tensor); }}) {
    EXPECT_THAT(refusal([&] { collective(torch::Tensor()); }),
                HasSubstr("takes dense tensors, found an undefined one"));
    EXPECT_THAT(refusal([&] { collective(torch::ones({2}).to_sparse()); }),
                HasSubstr("takes dense tensors, found a sparse one: call to_dense() before"));
  }
  EXPECT_EQ(refusal([&] { job.allreduce(expanded); }),
            "allreduce takes dense tensors, found an expanded one, whose values share memory: call "
            "contiguous() before");
  EXPECT_THAT(refusal([&] { job.broadcast(expanded); }), HasSubstr("broadcast takes dense"));
  EXPECT_TRUE(job.allgather(expanded).front().equal(expanded));
  const torch::Tensor one = torch::ones({1, 3}).expand({1, 3});
  EXPECT_NO_THROW(job.allreduce(one));
}

/// A dropped work keeps the memory that it reads and writes until it has ended.
TEST(CollectivesTest, OfWorkThatIsDropped) {
  constexpr std::int64_t length = 1 << 16;
  std::array<std::promise<void>, 2> dropped;
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    std::array<torch::Tensor, 2> sums;
    for (std::size_t round = 0; round < 2; ++round) {
      sums[round] = torch::ones({2, length}).t();  // travels in a copy
      if (entry.rank == 1) {
        dropped[round].get_future().wait();
      }
      job.allgather_async(torch::ones({length}));
      job.allreduce_async(sums[round]);
      const torch::Tensor others = torch::zeros({2, length});
      if (entry.rank == 0) {
        dropped[round].set_value();
      }
      job.barrier();
      EXPECT_EQ(others.count_nonzero().item<std::int64_t>(), 0);
    }
    if (entry.rank == 0) {
      EXPECT_EQ(sums[0].use_count(), 1U);  // released when the work of the second round was dropped
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Conjugates and negatives are lazy views, whose memory holds other values.
TEST(CollectivesTest, OfConjugatesAndNegatives) {
  TorchJob job = init();
  const torch::Tensor number = torch::complex(torch::ones({2}), torch::ones({2}));
  const torch::Tensor conjugate = job.allgather(number.conj()).front();
  EXPECT_TRUE(torch::imag(conjugate).equal(-torch::ones({2})));
  const torch::Tensor negative = torch::_neg_view(torch::ones({2}));
  EXPECT_TRUE(job.allgather(negative).front().equal(-torch::ones({2})));
  job.allreduce(negative);
  EXPECT_TRUE(negative.equal(-torch::ones({2})));
}

/// The CPU on a machine without CUDA, otherwise the device of worker 0.
TEST(TorchJobTest, DeviceOfAProcessByItself) {
  const torch::Device expected =
      torch::cuda::is_available() ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
  EXPECT_EQ(init().device(), expected);
}

TEST(LogTest, LinesGoToAFunction) {
  std::vector<std::string> lines;
  set_log([&](syncopate_log_level, const std::string& line) { lines.push_back(line); },
          SYNCOPATE_LOG_DEBUG);
  const auto train = [] {
    const std::string folder = run_folder();
    ThreadedPrograms(2).run([&](const JobEntry& entry) {
      train_by_loop({.scheme = "esync", .options = {{"run-dir", folder}}, .entry = entry}, 16, 1);
    });
  };
  train();
  set_log({});
  const std::size_t count = lines.size();
  EXPECT_GT(count, 0U);
  train();
  EXPECT_EQ(lines.size(), count);
}

TEST(CollectivesTest, OfAProcessByItself) {
  TorchJob job = init();
  const torch::Tensor values = torch::ones({2});
  job.allreduce(values);
  job.broadcast(values);
  job.barrier();
  EXPECT_TRUE(values.equal(torch::ones({2})));
  EXPECT_TRUE(job.allgather(values).front().equal(values));
  EXPECT_TRUE(job.allgather_async(values).wait().equal(values.unsqueeze(0)));
  EXPECT_TRUE(job.barrier_async().done());
  EXPECT_EQ(job.size(), 1U);
}

}  // namespace
}  // namespace syncopate::test
