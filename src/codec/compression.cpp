#include "codec/compression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using Kind = Compression::Kind;

constexpr std::string_view topk = "topk";

struct Named {
  std::string_view name;
  Kind kind;
};

constexpr std::array names{Named{"none", Kind::none}, Named{"bf16", Kind::bf16},
                           Named{"fp16", Kind::fp16}, Named{"int8", Kind::int8},
                           Named{"onebit", Kind::onebit}};

std::optional<double> share_in(std::string_view text) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  const bool whole_text = end == text.data() + text.size();
  return error == std::errc() && whole_text && share > 0 && share <= 1 ? std::optional(share)
                                                                       : std::nullopt;
}

std::optional<double> ratio_of_topk(std::string_view text) {
  const bool is_it = text.starts_with(topk) && text.substr(topk.size()).starts_with(':');
  return is_it ? share_in(text.substr(topk.size() + 1)) : std::nullopt;
}

}  // namespace

Compression Compression::parse(std::string_view text) {
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](const Named& named) { return named.name == text; });
  if (found != names.end()) {
    return {.kind = found->kind};
  }
  if (const auto ratio = ratio_of_topk(text)) {
    return {.kind = Kind::topk, .ratio = *ratio};
  }
  throw ConfigError(
      fmt::format("expected one of none, bf16, fp16, int8, onebit, topk:RATIO with a ratio above 0 "
                  "and up to 1; found '{}'",
                  text));
}

std::string to_string(const Compression& compression) {
  if (compression.kind == Kind::topk) {
    return fmt::format("{}:{}", topk, compression.ratio);
  }
  return std::string(std::find_if(names.begin(), names.end(), [&](const Named& named) {
                       return named.kind == compression.kind;
                     })->name);
}

std::vector<std::string_view> compression_names() {
  std::vector<std::string_view> known;
  std::ranges::transform(names, std::back_inserter(known), &Named::name);
  return known;
}

bool is_topk(std::string_view text) {
  return ratio_of_topk(text).has_value();
}

}  // namespace syncopate
