#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/option_values.hpp"

namespace syncopate {

/// The distribution of a built-in network's first weights, of convolutions and linear layers.
enum class WeightInit {
  standard,  ///< libtorch's: uniform, of variance 1 / (3 · inputs of a unit)
  xavier,    ///< uniform, of variance 2 / (inputs + outputs) (Glorot & Bengio 2010, eq. 16)
  he,        ///< normal, of variance 2 / inputs (He et al. 2015, arXiv:1502.01852, eq. 10)
};
constexpr auto names_of(WeightInit) {
  return std::to_array<Named<WeightInit>>(
      {{"default", WeightInit::standard}, {"xavier", WeightInit::xavier}, {"he", WeightInit::he}});
}

/// The number format of a forward pass and its loss. Parameters and gradients are float32.
enum class Precision {
  float32,
  bf16,  ///< bfloat16 in the operators for which libtorch's autocast chooses it
};
constexpr auto names_of(Precision) {
  return std::to_array<Named<Precision>>(
      {{"float32", Precision::float32}, {"bf16", Precision::bf16}});
}

/// A network, declared in `networks.inc`: the facts that options need without libtorch.
struct NetworkSpec {
  std::string_view name;
  std::string_view summary = "";
  bool has_batch_norm = false;      ///< its buffers are the running statistics of BatchNorm layers
  std::uint32_t usual_side = 28;    ///< height and width of the images that it is made for
  std::uint32_t smallest_side = 1;  ///< of images that it takes
};

/// Every declared network, in the order of help texts.
std::span<const NetworkSpec> all_networks();

/// Errors: ConfigError, which lists the names there are.
const NetworkSpec& network_named(std::string_view name);

/// The names of `all_networks`, in their order.
std::vector<std::string_view> network_names();

/// Why `network` cannot take images of this size; empty where it can.
std::string size_refusal(const NetworkSpec& network, std::uint32_t height, std::uint32_t width);

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
