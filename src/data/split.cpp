#include "data/split.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace syncopate {
namespace {

constexpr std::string_view dirichlet_prefix = "dirichlet:";

}  // namespace

std::optional<Split> Split::named(std::string_view name) {
  if (name == "iid") {
    return Split{};
  }
  if (name == "class") {
    return Split{.kind = Kind::by_class};
  }
  if (!name.starts_with(dirichlet_prefix)) {
    return std::nullopt;
  }
  const std::string_view number = name.substr(dirichlet_prefix.size());
  Split split{.kind = Kind::dirichlet};
  const char* const last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, split.alpha);
  const bool valid =
      error == std::errc() && end == last && std::isfinite(split.alpha) && split.alpha > 0;
  return valid ? std::optional(split) : std::nullopt;
}

std::string Split::to_string() const {
  switch (kind) {
    case Kind::iid: return "iid";
    case Kind::by_class: return "class";
    case Kind::dirichlet: return fmt::format("{}{}", dirichlet_prefix, alpha);
  }
  return "iid";
}

}  // namespace syncopate
