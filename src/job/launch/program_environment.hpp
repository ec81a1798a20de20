#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/launch/environment.hpp"
#include "job/launch/job_request.hpp"

namespace syncopate {

/// The values that `syncopate run` passes by environment variables to each program that it starts.
/// Only other launchers set the address.
struct ProgramLaunch {
  std::string coordinator;  ///< HOST:PORT
  std::string key;          ///< the secret of the job
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;
  GivenOptions options = {};            ///< of the command line
  std::string address = "127.0.0.1:0";  ///< HOST:PORT at which the program listens
  bool encrypted = false;               ///< the key is one that the user has given to all hosts
  bool unencrypted = false;             ///< allows an address beyond loopback

  friend bool operator==(const ProgramLaunch&, const ProgramLaunch&) = default;
};

/// The variables of one program.
std::vector<Variable> variables_of(const ProgramLaunch& launch);

/// The variables by which torch.distributed finds the other programs, all on this host: RANK and
/// the like, and MASTER_PORT.
std::vector<Variable> torch_variables_of(const ProgramLaunch& launch, const std::string& port);

/// Empty if no launcher of Syncopate has started this process. Errors: ConfigError if variables
/// contradict each other, or if one is not a number.
std::optional<ProgramLaunch> program_launch_in(const Environment& environment);

}  // namespace syncopate
