#pragma once

#include <span>
#include <string_view>

namespace syncopate {

/// A scheme as help texts show it.
struct SchemeInfo {
  std::string_view name;
  std::string_view rule;
  std::string_view source;
};

/// Every scheme that `make_scheme` makes.
std::span<const SchemeInfo> scheme_table();

}  // namespace syncopate
