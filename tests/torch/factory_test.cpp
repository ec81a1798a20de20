// Goal:   the interface of torch/ finds networks and devices by name, and an error contains an
//         unknown name.
// Method: known and unknown names, on the devices of this machine.

#include "torch/factory.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include "base/errors.hpp"
#include "spec/networks.hpp"
#include "tests/torch/examples.hpp"

namespace syncopate::torch_backend {
namespace {

std::string resolved(const std::string& wanted, std::uint32_t local_index = 0) {
  try {
    return resolve_device(wanted, local_index);
  } catch (const ConfigError& error) {
    return error.what();
  }
}

bool starts_with(const std::string& text, const std::string& beginning) {
  return text.rfind(beginning, 0) == 0;
}

TEST(Factory, ListsTheNetworksThatAreDeclaredWithRefusals) {
  const std::vector<NetworkFacts> all = all_network_facts({1, 28, 0}, 7);
  ASSERT_EQ(all.size(), all_networks().size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const NetworkSpec& network = all_networks()[i];
    EXPECT_EQ(all[i].name, network.name);
    EXPECT_EQ(all[i].summary, network.summary);
    EXPECT_EQ(all[i].input, (SampleShape{1, 28, 28}));
    EXPECT_EQ(all[i].classes, 7U);
    EXPECT_EQ(all[i].refusal.empty(), network.smallest_side <= 28) << all[i].name;
    EXPECT_EQ(all[i].refusal.empty(), all[i].multiply_adds > 0) << all[i].name;
  }
}

TEST(Factory, FindsDevices) {
  EXPECT_EQ(resolved("cpu", 3), "cpu");
  EXPECT_EQ(resolved("gpu"), "unknown device \"gpu\": expected auto, cpu, cuda or cuda:N");
  EXPECT_EQ(resolved("cuda:"), "unknown device \"cuda:\": expected auto, cpu, cuda or cuda:N");
  EXPECT_EQ(resolved("cuda:1x"), "unknown device \"cuda:1x\": expected auto, cpu, cuda or cuda:N");
  const auto count = static_cast<std::uint32_t>(torch::cuda::device_count());
  if (count > 0) {
    EXPECT_TRUE(starts_with(resolved("auto"), "cuda:0 ("));
    EXPECT_TRUE(starts_with(resolved("cuda", count), "cuda:0 ("));
    EXPECT_TRUE(starts_with(resolved("cuda:" + std::to_string(count)), "device cuda:"));
  } else {
    EXPECT_EQ(resolved("auto"), "cpu");
    for (const std::string wanted : {"cuda", "cuda:0"}) {
      EXPECT_EQ(resolved(wanted),
                "device " + wanted +
                    ": libtorch " TORCH_VERSION
                    " sees no CUDA device on this machine; use device cpu, or build "
                    "with a libtorch that has CUDA");
    }
  }
}

TEST(Factory, TakesTheDeviceThatItResolved) {
  const auto replica = make_replica({.name = "lenet5", .input = {1, 28, 28}},
                                    {.optimizer = Optimizer::adam}, resolve_device("auto", 0));
  EXPECT_EQ(replica->view(ReplicaVector::params).size(), 61706U);
}

TEST(Factory, RefusesUnknownNames) {
  const NetworkSettings network{.name = "lenet5", .input = {1, 28, 28}};
  EXPECT_THROW(make_replica({.name = "none"}, {.optimizer = Optimizer::sgd}, "cpu"), ConfigError);
  EXPECT_THROW(make_replica(network, {.optimizer = Optimizer::sgd}, "none"), ConfigError);
}

TEST(Factory, HoldsTheProcessToItsThreads) {
  set_threads(2);
  EXPECT_EQ(at::get_num_threads(), 2);
  set_threads(1);
  EXPECT_EQ(at::get_num_threads(), 1);
  EXPECT_EQ(at::get_num_interop_threads(), 1);
  EXPECT_THROW(set_threads(0), ConfigError);
}

}  // namespace
}  // namespace syncopate::torch_backend
