// Goal:   if two threads use a job at once, or a forked process or a moved-from object uses it, the
//         call is refused with the reason, and the job goes on.
// Method: a thread calls while another one is in a step; a child uses the job and destroys it; each
//         call after a move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <optional>
#include <thread>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::Each;
using testing::HasSubstr;

/// Forks a child that runs `body`, and returns the result of `body`.
bool is_true_in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const char* const answer = body() ? "true" : "false";
    ::execlp(answer, answer, nullptr);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(MisuseTest, ByAForkedProcess) {
  const auto errors = ThreadedPrograms(2).run([](const JobEntry& entry) {
    std::optional<TorchJob> job(std::in_place,
                                InitOptions{.options = {{"data-order", "leased"}}, .entry = entry});
    Share share = job->share(64, 8);
    Linear net;
    torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
    std::optional<DistributedOptimizer> optimizer(std::in_place, *job, net, sgd,
                                                  DistributedOptions{.batch_size = 4});
    const bool refused = is_true_in_child([&] {
      std::vector<float> values(3);
      const bool all = refusal([&] { job->allreduce(values); }).starts_with("a forked process") &&
                       refusal([&] { optimizer->step(4); }).starts_with("a forked process") &&
                       refusal([&] { optimizer->finish(); }).starts_with("a forked process") &&
                       refusal([&] { share.next(); }).starts_with("a forked process");
      optimizer.reset();
      job.reset();
      return all;
    });
    EXPECT_TRUE(refused);
    EXPECT_EQ(share.next().size(), 4U);  // the parent's share is unchanged
    optimizer->zero_grad();
    optimizer->step(4);
    optimizer->finish();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(MisuseTest, ByTwoThreadsAtOnce) {
  std::promise<void> refused;
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    if (entry.rank == 1) {
      refused.get_future().wait();
      job.open_group({0, 1});
      return;
    }
    std::thread other([&] {  // blocks until worker 1 opens the group
      while (refusal([&] { job.open_group({0, 1}); }) != "no ConfigError") {
      }
    });
    std::string message = "no ConfigError";
    while (message == "no ConfigError") {
      message = refusal([&] { job.share(8, 2); });
    }
    refused.set_value();
    other.join();
    EXPECT_THAT(message, HasSubstr("two threads use this job at the same time"));
    EXPECT_NO_THROW(job.share(8, 2));
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Computes a gradient that depends on the rank.
void compute(Linear& net, std::uint32_t rank) {
  net.forward(torch::full({4, 6}, 1 + static_cast<double>(rank))).sum().backward();
}

TEST(MisuseTest, ByStepsOfTheModulesOwnOptimizer) {
  ThreadedPrograms programs(2);
  const auto errors = programs.run([](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    Linear net;
    torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
    DistributedOptimizer optimizer(job, net, sgd, {.batch_size = 4});
    compute(net, entry.rank);
    sgd.step();
    optimizer.finish();
  });
  EXPECT_THAT(errors, Each(HasSubstr("the job ends with several models: that of worker 1 is not "
                                     "that of worker 0.")));
}

TEST(MisuseTest, ByLearningRatesThatDiffer) {
  ThreadedPrograms programs(2);
  const auto errors = programs.run([](const JobEntry& entry) {
    TorchJob job = init({.entry = entry});
    Linear net;
    torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
    DistributedOptimizer optimizer(job, net, sgd, {.batch_size = 4});
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      compute(net, entry.rank);
      if (step == 2 && entry.rank == 1) {
        sgd.param_groups().front().options().set_lr(0.05);
      }
      optimizer.step();
    }
  });
  EXPECT_THAT(errors, Each(HasSubstr("the learning rate is 0.1 on worker 0 and 0.05 on worker 1")));
}

TEST(MisuseTest, AfterAMove) {
  TorchJob job = init();
  Share share = job.share(64, 8);
  Group group = job.open_group({0});
  TensorWork work = job.allreduce_async(torch::ones({2}));
  const TorchJob other = std::move(job);
  const Share other_share = std::move(share);
  const Group other_group = std::move(group);
  TensorWork other_work = std::move(work);
  std::vector<float> values(3);
  const std::vector<std::function<void()>> of_job{
      [&] { job.rank(); },     [&] { job.size(); },          [&] { job.local_rank(); },
      [&] { job.device(); },   [&] { job.barrier(); },       [&] { job.allreduce(values); },
      [&] { job.everyone(); }, [&] { job.open_group({0}); }, [&] { job.share(64, 8); }};
  for (const auto& call : of_job) {
    EXPECT_EQ(refusal(call),
              "this job was moved from: use the one that it was moved to, or call syncopate::init "
              "first");
  }
  EXPECT_THAT(refusal([&] { share.step_size(); }), HasSubstr("this share was moved from"));
  EXPECT_THAT(refusal([&] { share.next(); }), HasSubstr("this share was moved from"));
  EXPECT_THAT(refusal([&] { group.rank(); }), HasSubstr("this group was moved from"));
  EXPECT_THAT(refusal([&] { group.barrier(); }), HasSubstr("this group was moved from"));
  EXPECT_THAT(refusal([&] { work.wait(); }), HasSubstr("this work was moved from"));
  EXPECT_EQ(other.size(), 1U);
  EXPECT_EQ(other_share.step_size(), 8U);
  EXPECT_EQ(other_group.size(), 1U);
  EXPECT_TRUE(other_work.wait().equal(torch::ones({2})));
  EXPECT_EQ(CollectiveWork().source(), SYNCOPATE_ANY);
}

}  // namespace
}  // namespace syncopate::test
