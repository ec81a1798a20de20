#include "spec/networks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/errors.hpp"
#include "spec/network_file.hpp"

namespace syncopate {
namespace {

constexpr NetworkSpec networks[] = {
#define NETWORK(id, title, ...) {.name = title, __VA_ARGS__},
#include "spec/networks.inc"
#undef NETWORK
};

}  // namespace

std::span<const NetworkSpec> all_networks() {
  return networks;
}

const NetworkSpec& network_named(std::string_view name) {
  const auto* const found = std::ranges::find(networks, name, &NetworkSpec::name);
  if (found != std::end(networks)) {
    return *found;
  }
  throw ConfigError(fmt::format("unknown network \"{}\": expected one of {}", name,
                                fmt::join(network_names(), ", ")));
}

std::vector<std::string_view> network_names() {
  std::vector<std::string_view> names;
  std::ranges::transform(networks, std::back_inserter(names), &NetworkSpec::name);
  return names;
}

std::string size_refusal(const NetworkSpec& network, std::uint32_t height, std::uint32_t width) {
  const std::uint32_t least = network.smallest_side;
  if (std::min(height, width) >= least) {
    return {};
  }
  return fmt::format("{} for images of {}x{}: expected at least {}x{}", network.name, height, width,
                     least, least);
}

/// The texts of the specification, which it refers to.
struct NetworkChoice::OfFile {
  explicit OfFile(const std::string& text)
      : path(text),
        name(std::filesystem::path(text).filename().string()),
        spec{.name = name, .summary = "a TorchScript file", .file = path} {}

  const std::string path;
  const std::string name;
  const NetworkSpec spec;
};

NetworkChoice NetworkChoice::of(const std::string& text) {
  if (!is_network_file(text)) {
    return &network_named(text);
  }
  const auto of_file = std::make_shared<const OfFile>(text);
  return NetworkChoice(std::shared_ptr<const NetworkSpec>(of_file, &of_file->spec));
}

}  // namespace syncopate
