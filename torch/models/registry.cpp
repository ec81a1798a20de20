#include <fmt/core.h>

#include "base/errors.hpp"
#include "spec/network_file.hpp"
#include "spec/networks.hpp"
#include "torch/network_module.hpp"
#include "torch/resize.hpp"
#include "torch/script_network.hpp"
#include "torch/seeded_dropout.hpp"
#include "torch/weight_init.hpp"

namespace syncopate::torch_backend {

#define NETWORK(id, ...) Network make_##id(const SampleShape& input, std::uint32_t classes);
#include "spec/networks.inc"
#undef NETWORK

namespace {

struct Builder {
  std::string_view network;
  Network (*build)(const SampleShape& input, std::uint32_t classes);
};

constexpr Builder builders[] = {
#define NETWORK(id, name, ...) {name, make_##id},
#include "spec/networks.inc"
#undef NETWORK
};

const Builder& builder_of(const NetworkSpec& network) {
  for (const Builder& builder : builders) {
    if (builder.network == network.name) return builder;
  }
  throw InternalError(fmt::format("network {} has no builder", network.name));
}

}  // namespace

Network build_network(const NetworkSettings& settings) {
  if (settings.resize) return build_behind_resize(settings);
  if (is_network_file(settings.name)) return load_script_network(settings.name);
  const NetworkSpec& spec = network_named(settings.name);
  const Builder& builder = builder_of(spec);
  const auto& [channels, height, width] = settings.input;
  if (settings.input.values() == 0 || settings.classes == 0) {
    throw ConfigError(fmt::format("{} for {}x{}x{} inputs and {} classes: expected none to be 0",
                                  settings.name, channels, height, width, settings.classes));
  }
  if (const std::string refusal = size_refusal(spec, height, width); !refusal.empty()) {
    throw ConfigError(refusal + "; take images of that size or more");
  }
  Network network = builder.build(settings.input, settings.classes);
  draw_weights(*network.module, settings.weight_init);
  seed_dropout(*network.module, settings.dropout_seed);
  return network;
}

}  // namespace syncopate::torch_backend
