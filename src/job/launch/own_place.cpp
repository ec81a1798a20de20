#include "job/launch/own_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/errors.hpp"
#include "config/text.hpp"

namespace syncopate {

PortRange port_range_in(const std::string& text, std::string_view named_by) {
  if (text.empty()) {
    return {};
  }
  const auto dash = std::min(text.find('-'), text.size());
  const auto first = number_in<std::uint16_t>(text.substr(0, dash));
  const auto last = dash == text.size() ? first : number_in<std::uint16_t>(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *last < *first) {
    throw ConfigError(fmt::format(
        "{}: expected FIRST-LAST, from 1 to 65535, such as 9100-9199, found '{}'", named_by, text));
  }
  return {*first, *last};
}

OwnPlace own_place(const Environment& environment) {
  return {.interface = environment(interface_variable),
          .ports = port_range_in(environment(ports_variable), ports_variable)};
}

}  // namespace syncopate
