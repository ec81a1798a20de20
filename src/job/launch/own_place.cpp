#include "job/launch/own_place.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/errors.hpp"
#include "config/range_text.hpp"

namespace syncopate {

PortRange port_range_in(const std::string& text, std::string_view named_by) {
  if (text.empty()) {
    return {};
  }
  const auto ports = range_in<std::uint16_t>(text);
  if (!ports || ports->first == 0) {
    throw ConfigError(fmt::format(
        "{}: expected FIRST-LAST, from 1 to 65535, such as 9100-9199, found '{}'", named_by, text));
  }
  return {ports->first, ports->second};
}

OwnPlace own_place(const Environment& environment) {
  return {.interface = environment(interface_variable),
          .ports = port_range_in(environment(ports_variable), ports_variable)};
}

}  // namespace syncopate
