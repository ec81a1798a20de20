#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "job/launch/own_place.hpp"
#include "job/launch/program_environment.hpp"

namespace syncopate {

/// The coordinator of a job whose ranks may be on several hosts. All ranks know its address before
/// they start.
struct KnownCoordinator {
  std::string address;  ///< HOST:PORT, of the host of rank 0
  std::string key;      ///< which encrypts the job
  OwnPlace place = {};  ///< of this process
};

/// Refuses an address without a port that all hosts can know; the store of torch.distributed may be
/// at the next one. `named_by`: option or variable, for errors. Errors: ConfigError.
void expect_port(const std::string& address, std::string_view named_by);

/// Of `coordinator_variable`; empty if it is not set. Errors: ConfigError if the address has no
/// port, or without a key in the file of `key_file_variable`; those of `read_key`.
std::optional<KnownCoordinator> known_coordinator(const Environment& environment);

}  // namespace syncopate
