// Goal:   a replica of the deepest network trains on a stack of 1 MiB, which is what a node of the
//         simulator has, and computes the same bits there.
// Method: two steps of resnet18-v1 in a thread of that stack and in the test's own.

#include <gtest/gtest.h>
#include <pthread.h>

#include <exception>

#include "tests/torch/examples.hpp"
#include "torch/factory.hpp"

namespace syncopate::torch_backend {
namespace {

std::vector<float> parameters_after_two_steps() {
  const SampleShape shape{1, 28, 28};
  const auto replica = make_replica({.name = "resnet18-v1", .input = shape},
                                    {.optimizer = Optimizer::momentum}, "cpu");
  replica->initialise(1);
  for (const std::uint64_t seed : {1, 2}) {
    replica->backward(random_batch(seed, shape, 2));
    replica->local_step();
  }
  replica->evaluate(random_batch(3, shape, 2));
  return values_of(*replica, ReplicaVector::params);
}

struct Result {
  std::vector<float> params;
  std::exception_ptr error;
};

void* train(void* result) {
  try {
    static_cast<Result*>(result)->params = parameters_after_two_steps();
  } catch (...) {
    static_cast<Result*>(result)->error = std::current_exception();
  }
  return nullptr;
}

TEST(SmallStack, TrainsTheDeepestNetwork) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
  Result result;
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, train, &result), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  if (result.error) std::rethrow_exception(result.error);
  EXPECT_EQ(result.params, parameters_after_two_steps());
}

}  // namespace
}  // namespace syncopate::torch_backend
