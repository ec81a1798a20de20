// Goal:   a step of workers with unequal parts of a batch equals a step over the whole batch; a
//         gradient that is not finite has the same effect in a single process as in a job; memory
//         does not grow over many steps.
// Method: programs that are threads are compared with libtorch without a job; the test measures the
//         heap during the training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <limits>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t batch = 10;

torch::Tensor images() {
  return torch::sin(torch::arange(batch * 6)).view({batch, 6});
}

torch::Tensor loss(Linear& net, std::int64_t first, std::int64_t count) {
  const torch::Tensor labels = torch::arange(batch) % 3;
  return torch::nn::functional::cross_entropy(net.forward(images().narrow(0, first, count)),
                                              labels.narrow(0, first, count));
}

/// Returns the gradients of the whole batch, in the order of the parameters.
std::vector<float> gradients_of_batch() {
  Linear net;
  loss(net, 0, batch).backward();
  std::vector<float> values;
  for (const torch::Tensor& parameter : net.parameters()) {
    const torch::Tensor flat = parameter.grad().contiguous();
    values.insert(values.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }
  return values;
}

/// With SGD at learning rate 1 a step equals the gradient.
TEST(LoopStepsTest, OfUnequalPartsAreThoseOfTheWholeBatch) {
  const std::vector<float> expected = gradients_of_batch();
  const std::vector<float> before = values_of(Linear());
  const std::string folder = run_folder();
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"run-dir", folder}}, .entry = entry});
    Linear net;
    torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(1));
    DistributedOptimizer optimizer(job, net, sgd, {.batch_size = 5});
    const std::int64_t own = entry.rank == 0 ? 7 : 3;
    loss(net, entry.rank == 0 ? 0 : 7, own).backward();
    optimizer.step(own);
    const std::vector<float> after = values_of(net);
    ASSERT_EQ(after.size(), expected.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_NEAR(before[i] - after[i], expected[i], 1e-6) << i;
    }
    optimizer.finish();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// A network of two heads, one of which each pass uses.
struct Heads : torch::nn::Module {
  Heads() {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : parameters()) {
      parameter.copy_(torch::sin(torch::arange(parameter.numel())).view(parameter.sizes()));
    }
  }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(6, 3))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(6, 3))};
};

TEST(LoopStepsTest, AlignMakesModulesEqualAndKeepsGradients) {
  for (const std::string scheme : {"ssgd", "esync", "ssp"}) {
    SCOPED_TRACE(scheme);
    const std::string folder = run_folder();
    std::array<std::vector<float>, 2> aligned;
    const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
      TorchJob job = init({.scheme = scheme, .options = {{"run-dir", folder}}, .entry = entry});
      Heads net;
      torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1));
      DistributedOptimizer optimizer(job, net, sgd, {.batch_size = 5});
      const auto backward = [&] { net.first->forward(images()).square().mean().backward(); };
      for (int step = 0; step < (entry.rank == 0 ? 5 : 1); ++step) {
        optimizer.zero_grad();
        backward();
        optimizer.step();
      }
      optimizer.zero_grad();
      backward();
      const torch::Tensor before = net.first->weight.grad().clone();
      optimizer.align("after an epoch");
      EXPECT_TRUE(torch::equal(net.first->weight.grad(), before));
      EXPECT_FALSE(net.second->weight.grad().defined());  // no pass has used it
      aligned.at(entry.rank) = values_of(net);
      optimizer.finish();
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
    EXPECT_EQ(aligned[0], aligned[1]);
  }
}

/// Takes six steps; `head_of(step)` is the head that this worker uses.
template <class HeadOf>
std::vector<float> train_heads(const InitOptions& options, const HeadOf& head_of) {
  TorchJob job = init(options);
  Heads net;
  torch::optim::AdamW adamw(net.parameters(), torch::optim::AdamWOptions(0.1).weight_decay(0.5));
  DistributedOptimizer optimizer(job, net, adamw, {.batch_size = batch});
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    (head_of(step) == 0 ? net.first : net.second)(images()).square().sum().backward();
    optimizer.step();
  }
  optimizer.finish();
  return values_of(net);
}

/// Takes the same steps without a job, with the mean loss of `workers` workers. The head of a
/// worker is `head_of(step, worker)`.
template <class HeadOf>
std::vector<float> heads_without_job(int workers, const HeadOf& head_of) {
  Heads net;
  torch::optim::AdamW adamw(net.parameters(), torch::optim::AdamWOptions(0.1).weight_decay(0.5));
  for (int step = 0; step < 6; ++step) {
    for (torch::Tensor& parameter : net.parameters()) parameter.mutable_grad().reset();
    for (int worker = 0; worker < workers; ++worker) {
      auto& head = head_of(step, worker) == 0 ? net.first : net.second;
      (head(images()).square().sum() / workers).backward();
    }
    adamw.step();
  }
  return values_of(net);
}

TEST(LoopStepsTest, LeaveParametersWithoutAGradientAsTheyAre) {
  const auto first = [](int /*step*/, int /*worker*/ = 0) { return 0; };
  const auto turns = [](int step, int /*worker*/ = 0) { return step % 2; };
  EXPECT_EQ(train_heads({}, first), heads_without_job(1, first));
  EXPECT_EQ(train_heads({}, turns), heads_without_job(1, turns));
}

TEST(LoopStepsTest, MoveParametersThatSomeWorkersHaveUsedAsOneProcessWould) {
  const auto by_worker = [](int step, int worker) { return step == 2 ? 0 : worker; };
  const std::vector<float> expected = heads_without_job(2, by_worker);
  const std::string folder = run_folder();
  std::array<std::vector<float>, 2> found;
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    const int rank = static_cast<int>(entry.rank);
    found.at(entry.rank) = train_heads({.options = {{"run-dir", folder}}, .entry = entry},
                                       [&](int step) { return by_worker(step, rank); });
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  for (const std::vector<float>& own : found) {
    ASSERT_EQ(own.size(), expected.size());
    for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], expected[i], 1e-5) << i;
  }
}

TEST(LoopStepsTest, RefuseAServerThatWouldMoveAParameterWithoutAGradient) {
  const std::string folder = run_folder();
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    train_heads({.scheme = "asgd", .options = {{"run-dir", folder}}, .entry = entry},
                [](int /*step*/) { return 0; });
  });
  const auto own = HasSubstr("no backward pass of this step has used second.weight");
  EXPECT_THAT(errors, testing::Contains(own));
  // The slower program may also end because the other one was refused.
  EXPECT_THAT(errors,
              testing::Each(testing::AnyOf(own, HasSubstr("left its loop by an exception"))));
}

/// A network with a frozen layer of bfloat16 before a trained one.
struct Adapted : torch::nn::Module {
  Adapted() {
    base->to(torch::kBFloat16);
    for (torch::Tensor& parameter : base->parameters()) parameter.requires_grad_(false);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return head(base(x.to(torch::kBFloat16)).to(torch::kFloat32));
  }

  torch::nn::Linear base{register_module("base", torch::nn::Linear(6, 6))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(6, 3))};
};

TEST(LoopStepsTest, FrozenParametersAreThoseOfWorkerZeroAndStayOutOfTheExchange) {
  const std::string folder = run_folder();
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"run-dir", folder}}, .entry = entry});
    Adapted net;
    const auto set = [](const torch::Tensor& tensor, double value) { tensor.data().fill_(value); };
    set(net.base->weight, entry.rank == 0 ? 0.5 : 2);
    torch::optim::SGD sgd(net.head->parameters(), torch::optim::SGDOptions(0.1));
    DistributedOptimizer optimizer(job, net, sgd, {.batch_size = batch});
    EXPECT_TRUE(net.base->weight.eq(0.5).all().item<bool>());
    const double own = entry.rank;
    set(net.base->weight, own);
    net.forward(images()).square().sum().backward();
    optimizer.step();
    optimizer.finish();
    EXPECT_TRUE(net.base->weight.eq(own).all().item<bool>());
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Takes four steps; the gradient of the second one is not finite. Returns the parameters.
std::vector<float> train_with_nan(const InitOptions& options) {
  TorchJob job = init(options);
  Linear net;
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  DistributedOptimizer optimizer(job, net, sgd, {.batch_size = batch});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    const float factor = step == 1 ? std::numeric_limits<float>::quiet_NaN() : 1;
    (loss(net, 0, batch) * factor).backward();
    optimizer.step();
  }
  optimizer.finish();
  return values_of(net);
}

TEST(LoopStepsTest, GradientThatIsNotFinite) {
  const std::string message = "worker 0, step 2: the gradient of a batch is not finite";
  try {
    train_with_nan({});
    ADD_FAILURE() << "no NotFinite";
  } catch (const NotFinite& error) {
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
  const auto errors = ThreadedPrograms(1).run([](const JobEntry& entry) {
    train_with_nan({.options = {{"run-dir", run_folder()}}, .entry = entry});
  });
  EXPECT_THAT(errors.front(), HasSubstr(message));
}

TEST(LoopStepsTest, GradientThatIsNotFiniteAndSkipped) {
  const std::vector<float> alone = train_with_nan({.options = {{"on-nan", "skip"}}});
  const auto errors = ThreadedPrograms(1).run([&](const JobEntry& entry) {
    EXPECT_EQ(alone, train_with_nan({.options = {{"on-nan", "skip"}, {"run-dir", run_folder()}},
                                     .entry = entry}));
  });
  EXPECT_EQ(errors, std::vector<std::string>(1));
}

/// Returns the bytes of the heap in use; 0 under a sanitizer, which has its own heap.
std::size_t heap() {
  return ::mallinfo2().uordblks;
}

TEST(LoopStepsTest, TenThousandNeedNoMoreMemory) {
  constexpr std::size_t most_growth = 512 * 1024;  // bytes, of both programs
  std::size_t before = 0;
  std::size_t after = 0;
  const std::string folder = run_folder();
  const auto errors = ThreadedPrograms(2).run([&](const JobEntry& entry) {
    TorchJob job = init({.options = {{"run-dir", folder}}, .entry = entry});
    auto loader = job.partition_dataset(SmallImages().map(torch::data::transforms::Stack<>()),
                                        2 * batch_size);
    Linear net;
    torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    DistributedOptimizer optimizer(job, net, sgd);
    for (int step = 0; step < 10000;) {
      for (auto& images : *loader) {
        if (entry.rank == 0 && step == 2000) before = heap();
        optimizer.zero_grad();
        torch::nn::functional::cross_entropy(net.forward(images.data), images.target).backward();
        optimizer.step(images.target.size(0));
        ++step;
      }
    }
    if (entry.rank == 0) after = heap();
    optimizer.finish();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_LT(after, before + most_growth);
}

}  // namespace
}  // namespace syncopate::test
