// Goal:   a network in a TorchScript file trains as the same module in C++ does, with the parameter
//         names and initial values of the file; a file that cannot be trained is refused in one
//         line.
// Method: the test writes a script with the tensors of a C++ module to a file, loads it, and trains
//         both in the same way.
#include "torch/script_network.hpp"

#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <fstream>
#include <regex>

#include "base/errors.hpp"
#include "spec/network_file.hpp"
#include "tests/support/refusal.hpp"
#include "tests/torch/examples.hpp"
#include "tests/torch/script_files.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

std::string saved_script(const torch::jit::Module& script, const std::string& name) {
  const std::string path = testing::TempDir() + name;
  script.save(path);
  return path;
}

/// Writes a file with the network and the tensors of `tiny`; returns its path.
std::string saved_tiny(const Tiny& tiny) {
  torch::jit::Module script = script_with_tensors_of(tiny);
  define_batch_norm(script.attr("norm").toModule());
  script.define(R"(
def forward(self, x):
    x = torch.conv2d(x, self.conv.weight, self.conv.bias)
    x = torch.flatten(torch.relu(self.norm.forward(x)), 1)
    return torch.linear(x, self.fc.weight, self.fc.bias)
)");
  return saved_script(script, "tiny.pt");
}

ModuleReplica::Options options_for(const std::string& path) {
  return {.build = [path] { return load_script_network(path); },
          .make_optimizer = with_optimizer({.optimizer = Optimizer::momentum})};
}

std::vector<std::string> names_in(Replica& replica, ReplicaVector which) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : replica.layout(which)) names.push_back(tensor.name);
  return names;
}

class ScriptNetwork : public testing::Test {
 protected:
  ScriptNetwork() : script_(options_for(saved_tiny(*plain_.module))) {}

  void expect_equal(ReplicaVector which, float tolerance = 1e-6F) {
    EXPECT_THAT(values_of(script_, which),
                Pointwise(FloatNear(tolerance), values_of(plain_.replica, which)));
  }

  Watched<Tiny> plain_{{}};
  ModuleReplica script_;
};

TEST_F(ScriptNetwork, HasItsOwnNamesAndValues) {
  EXPECT_THAT(
      names_in(script_, ReplicaVector::params),
      ElementsAre("conv.weight", "conv.bias", "norm.weight", "norm.bias", "fc.weight", "fc.bias"));
  EXPECT_THAT(names_in(script_, ReplicaVector::buffers),
              ElementsAre("norm.running_mean", "norm.running_var"));
  expect_equal(ReplicaVector::params, 0);
  const std::vector<float> own = values_of(script_, ReplicaVector::params);
  for (const std::uint64_t seed : {1, 2}) {
    std::ranges::fill(script_.view(ReplicaVector::params), 0.5F);
    script_.initialise(seed);
    EXPECT_EQ(values_of(script_, ReplicaVector::params), own);
  }
}

TEST_F(ScriptNetwork, TrainsAsTheSameModuleInCpp) {
  for (std::uint64_t step = 1; step <= 5; ++step) {
    const Batch batch = tiny_batch(step);
    const PassResult of_plain = plain_.replica.backward(batch);
    const PassResult of_script = script_.backward(batch);
    EXPECT_NEAR(of_script.loss_sum, of_plain.loss_sum, 1e-5);
    EXPECT_EQ(of_script.correct, of_plain.correct);
    expect_equal(ReplicaVector::grads);
    plain_.replica.local_step();
    script_.local_step();
  }
  expect_equal(ReplicaVector::params, 1e-5F);
  expect_equal(ReplicaVector::buffers, 1e-5F);
}

TEST_F(ScriptNetwork, IsEvaluatedInEvaluationMode) {
  for (std::uint64_t step = 1; step <= 3; ++step) {
    plain_.replica.backward(tiny_batch(step));
    script_.backward(tiny_batch(step));
  }
  const std::vector<float> statistics = values_of(script_, ReplicaVector::buffers);
  const Batch batch = tiny_batch(9);
  EXPECT_NEAR(script_.evaluate(batch).loss_sum, plain_.replica.evaluate(batch).loss_sum, 1e-5);
  EXPECT_EQ(values_of(script_, ReplicaVector::buffers), statistics);
  script_.backward(batch);
  EXPECT_NE(values_of(script_, ReplicaVector::buffers), statistics) << "it trains again";
}

TEST_F(ScriptNetwork, RecomputesItsStatistics) {
  for (ModuleReplica* const replica : {&plain_.replica, &script_}) {
    replica->backward(tiny_batch(1));
    std::uint64_t seed = 10;
    replica->recompute_statistics([&](Batch& into) {
      into = tiny_batch(seed);
      return ++seed <= 14;
    });
  }
  expect_equal(ReplicaVector::buffers, 1e-5F);
  const Batch batch = tiny_batch(20);
  script_.backward(batch);
  plain_.replica.backward(batch);
  expect_equal(ReplicaVector::buffers, 1e-5F);
}

TEST_F(ScriptNetwork, IsKnownToHaveBatchNorm) {
  EXPECT_TRUE(has_batch_norm(*NetworkChoice::of(saved_tiny(*plain_.module))));
  const std::string plain = saved_script(script_classifier(36, 3), "plain.pt");
  EXPECT_FALSE(has_batch_norm(*NetworkChoice::of(plain)));
}

TEST(ScriptNetworkFile, HasItsFigures) {
  const std::string path = saved_script(script_classifier(36, 3), "figures.pt");
  const NetworkSettings settings{.name = path, .input = tiny_shape, .classes = 3};
  check_network(settings);
  const NetworkFacts facts = network_facts(settings);
  EXPECT_EQ(facts.parameters, 36U * 3 + 3);
  EXPECT_EQ(facts.buffers, 0U);
  EXPECT_EQ(facts.multiply_adds, 36U * 3);
}

std::string refusal_of(const std::string& path, SampleShape input = tiny_shape) {
  return syncopate::refusal([&] { check_network({.name = path, .input = input, .classes = 3}); });
}

std::string refusal_of(const torch::jit::Module& script) {
  return refusal_of(saved_script(script, "refused.pt"));
}

TEST(ScriptNetworkFile, IsRefusedWhereItIsMissingOrNotTorchScript) {
  EXPECT_THAT(refusal_of("/nowhere/model.pt"),
              HasSubstr("expected a TorchScript file, found none at /nowhere/model.pt"));
  const std::string path = testing::TempDir() + "text.pt";
  std::ofstream(path) << "weights";
  EXPECT_THAT(refusal_of(path), AllOf(HasSubstr(path + " is not a whole TorchScript file ("),
                                      HasSubstr("torch.jit.script(module).save(\"text.pt\")"),
                                      testing::Not(HasSubstr("\n"))));
}

/// Copies a file and replaces operators in its code by `name`, which only a later libtorch may
/// know. Returns the path of the copy.
std::string with_operator(const std::string& path, const std::string& name) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  std::string copy = testing::TempDir() + "later.pt";
  caffe2::serialize::PyTorchStreamWriter writer(copy);
  for (const std::string& record : reader.getAllRecords()) {
    if (record == "version" || record.starts_with(".data/")) {
      continue;  // the writer adds these records itself
    }
    const auto [data, size] = reader.getRecord(record);
    std::string text(static_cast<const char*>(data.get()), size);
    if (record.ends_with(".py")) {
      text = std::regex_replace(text, std::regex("torch\\.(addmm|linear|matmul|flatten)\\("),
                                "torch." + name + "(");
    }
    writer.writeRecord(record, text.data(), text.size());
  }
  writer.writeEndOfFile();
  return copy;
}

TEST(ScriptNetworkFile, OfALaterLibtorchIsSaidToBe) {
  const std::string path = saved_script(script_classifier(36, 3), "now.pt");
  EXPECT_THAT(refusal_of(with_operator(path, "of_tomorrow")),
              AllOf(HasSubstr("needs a later libtorch than that of this program, " TORCH_VERSION),
                    HasSubstr("does not know aten::of_tomorrow: "), testing::Not(HasSubstr("\n"))));
}

TEST(ScriptNetworkFile, IsRefusedWhereItsOutputsAreNotOnesOfTheClasses) {
  EXPECT_THAT(refusal_of(script_classifier(36, 5)),
              HasSubstr("expected outputs [samples, 3] for the 3 classes of the data, found [2, 5] "
                        "for 2 samples"));
  torch::jit::Module pair("__torch__.Pair");
  pair.register_parameter("weight", torch::ones({1}, torch::requires_grad()), false);
  pair.define("def forward(self, x):\n    return (x, x)\n");
  EXPECT_THAT(refusal_of(pair), HasSubstr("returns (Tensor, Tensor): expected a tensor"));
  const std::string path = saved_script(script_classifier(35, 3), "shape.pt");
  EXPECT_THAT(refusal_of(path), AllOf(HasSubstr("script failed: "), HasSubstr("shape"),
                                      testing::Not(HasSubstr("\n"))));
}

TEST(ScriptNetworkFile, IsRefusedWithoutParametersOfFloat32) {
  EXPECT_EQ(refusal_of(script_classifier(36, 3, torch::kFloat64)),
            "tensor weight of the network is of type Double: a replica holds float32");
  torch::jit::Module fixed("__torch__.Fixed");
  fixed.define("def forward(self, x):\n    return torch.flatten(x, 1)\n");
  EXPECT_EQ(refusal_of(fixed), "the network has no parameter to train");
}

}  // namespace
}  // namespace syncopate::torch_backend
