#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/option_values.hpp"

namespace syncopate {

/// A network, declared in `networks.inc`: the facts that options need without libtorch.
struct NetworkSpec {
  std::string_view name;
  std::string_view summary = "";
  bool has_batch_norm = false;  ///< its buffers are the running statistics of BatchNorm layers
};

/// Every declared network, in the order of help texts.
std::span<const NetworkSpec> all_networks();

/// Errors: ConfigError, which lists the names there are.
const NetworkSpec& network_named(std::string_view name);

/// The names of `all_networks`, in their order.
std::vector<std::string_view> network_names();

/// The configuration holds a declared network, which has static storage.
template <>
struct OptionTraits<const NetworkSpec*> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const NetworkSpec* network) { return std::string(network->name); }
  static const NetworkSpec* read(const OptionValue& value) {
    return &network_named(std::get<std::string>(value));
  }
  static std::vector<std::string_view> choices() { return network_names(); }
};

}  // namespace syncopate
