#include "torch/models/registry.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/errors.hpp"
#include "torch/models/lenet5.hpp"
#include "torch/models/mlp.hpp"
#include "torch/models/resnet18_v1.hpp"

namespace syncopate::torch_backend {
namespace {

constexpr std::array networks{
    RegisteredNetwork{"mlp", "two hidden layers of 256 and 128 units", make_mlp},
    RegisteredNetwork{"lenet5", "two convolutions, three linear layers (LeCun et al. 1998)",
                      make_lenet5},
    RegisteredNetwork{"resnet18-v1", "18-layer residual network (He et al. 2015)",
                      make_resnet18_v1},
};

}  // namespace

std::span<const RegisteredNetwork> registered_networks() {
  return networks;
}

const RegisteredNetwork& registered_network(const std::string& name) {
  const auto* const found = std::find_if(networks.begin(), networks.end(),
                                         [&](const auto& network) { return network.name == name; });
  if (found != networks.end()) return *found;
  throw ConfigError(fmt::format("unknown network \"{}\": expected one of {}", name,
                                fmt::join(network_names(), ", ")));
}

Network build_network(const NetworkSpec& spec) {
  const RegisteredNetwork& network = registered_network(spec.name);
  if (spec.input.values() == 0 || spec.classes == 0) {
    throw ConfigError(fmt::format("{} for {}x{}x{} inputs and {} classes: expected none to be 0",
                                  spec.name, spec.input.channels, spec.input.height,
                                  spec.input.width, spec.classes));
  }
  return network.build(spec.input, spec.classes);
}

}  // namespace syncopate::torch_backend
