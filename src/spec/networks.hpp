#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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

/// A network that is declared in `networks.inc` or in a file of the user: the facts that options
/// need without libtorch.
struct NetworkSpec {
  std::string_view name;
  std::string_view summary = "";
  bool has_batch_norm = false;      ///< its buffers are the running statistics of BatchNorm layers
  std::uint32_t usual_side = 28;    ///< height and width of the images that it is made for
  std::uint32_t smallest_side = 1;  ///< of images that it takes
  std::string_view file = "";       ///< path of a TorchScript file; empty for a declared network
};

/// Every declared network, in the order of help texts.
std::span<const NetworkSpec> all_networks();

/// Errors: ConfigError, which lists all names.
const NetworkSpec& network_named(std::string_view name);

/// The names of `all_networks`, in their order.
std::vector<std::string_view> network_names();

/// Returns why `network` cannot take images of this size; empty if it can. The caller adds advice.
std::string size_refusal(const NetworkSpec& network, std::uint32_t height, std::uint32_t width);

/// The network of a job: a declared one, or the user's own in a TorchScript file.
class NetworkChoice {
 public:
  /// `declared` has static storage.
  // NOLINTNEXTLINE(google-explicit-constructor): a network by itself is a choice
  NetworkChoice(const NetworkSpec* declared) : spec_(std::shared_ptr<void>(), declared) {}
  /// Makes a choice from a name or a path. The file need not exist. Errors: ConfigError if the name
  /// is unknown.
  static NetworkChoice of(const std::string& text);

  /// The text from which `of` makes this choice.
  std::string text() const { return std::string(spec_->file.empty() ? spec_->name : spec_->file); }
  const NetworkSpec& operator*() const { return *spec_; }
  const NetworkSpec* operator->() const { return spec_.get(); }
  friend bool operator==(const NetworkChoice& left, const NetworkChoice& right) {
    return left.text() == right.text();
  }

 private:
  struct OfFile;
  explicit NetworkChoice(std::shared_ptr<const NetworkSpec> spec) : spec_(std::move(spec)) {}

  std::shared_ptr<const NetworkSpec> spec_;  ///< shared by the copies of a choice
};

/// The configuration holds a choice of a network.
template <>
struct OptionTraits<NetworkChoice> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const NetworkChoice& network) { return network.text(); }
  static NetworkChoice read(const OptionValue& value) {
    return NetworkChoice::of(std::get<std::string>(value));
  }
  static std::vector<std::string_view> choices() { return network_names(); }
};

}  // namespace syncopate
