#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "job/launch/descriptor.hpp"
#include "job/launch/own_place.hpp"
#include "job/launch/program_environment.hpp"
#include "transport/tcp/network.hpp"

namespace syncopate {

/// The coordinator of a job whose ranks may be on several hosts. All ranks know its address before
/// they start.
struct KnownCoordinator {
  std::string address;  ///< HOST:PORT, of the host of rank 0
  std::string key;      ///< which encrypts the job
  OwnPlace place = {};  ///< of this process
};

/// HOST:0 of the interface; empty without one: a node then listens at the address from which it
/// reaches the coordinator. Errors: ConfigError for an interface that this host lacks.
std::string own_address(const OwnPlace& place);

/// Of `coordinator_variable`; empty if it is not set. Errors: ConfigError if the address has no
/// port, or without a key in the file of `key_file_variable`; those of `read_key`.
std::optional<KnownCoordinator> known_coordinator(const Environment& environment);

/// A socket that accepts connections at HOST:PORT. `named_by` is the option or variable that gives
/// the address, for errors. Errors: ConfigError if this host cannot listen there.
ListeningSocket listen_at(const std::string& address, tcp::Network network,
                          std::string_view named_by);

}  // namespace syncopate
