#pragma once

#include <span>
#include <string>

#include "torch/factory.hpp"
#include "torch/network.hpp"

namespace syncopate::torch_backend {

/// A network that `--network` knows.
struct RegisteredNetwork {
  const char* name;
  const char* summary;
  /// Errors: ConfigError, for an input that it cannot take.
  Network (*build)(const SampleShape& input, std::uint32_t classes);
};

/// In the order in which help texts list them.
std::span<const RegisteredNetwork> registered_networks();

/// Errors: ConfigError, which lists the names there are.
const RegisteredNetwork& registered_network(const std::string& name);

/// Errors: ConfigError, for an unknown name or an input that the network cannot take.
Network build_network(const NetworkSpec& spec);

}  // namespace syncopate::torch_backend
