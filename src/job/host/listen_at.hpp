#pragma once

#include <string>
#include <string_view>

#include "job/launch/descriptor.hpp"
#include "transport/tcp/network.hpp"

namespace syncopate {

/// A socket that accepts connections at HOST:PORT. `named_by` is the option or variable that gives
/// the address, for errors. Errors: ConfigError if this host cannot listen there.
ListeningSocket listen_at(const std::string& address, tcp::Network network,
                          std::string_view named_by);

}  // namespace syncopate
