#pragma once

#include <string>
#include <string_view>

#include "job/launch/environment.hpp"
#include "transport/port_range.hpp"

namespace syncopate {

constexpr const char* interface_variable = "SYNCOPATE_INTERFACE";
constexpr const char* ports_variable = "SYNCOPATE_PORTS";

/// Where a process of a job on several hosts listens.
struct OwnPlace {
  std::string interface = {};  ///< the name of a network interface; empty: that of the route
  PortRange ports = {};        ///< one of these; empty: any free one

  friend bool operator==(const OwnPlace&, const OwnPlace&) = default;
};

/// FIRST-LAST, or one port; empty for an empty text. `named_by`: option or variable, for errors.
/// Errors: ConfigError.
PortRange port_range_in(const std::string& text, std::string_view named_by);

/// That of the variables above. Errors: ConfigError.
OwnPlace own_place(const Environment& environment);

}  // namespace syncopate
