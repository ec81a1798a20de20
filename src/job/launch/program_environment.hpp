#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/launch/environment.hpp"
#include "job/launch/job_request.hpp"
#include "job/launch/own_place.hpp"

namespace syncopate {

/// HOST:PORT of the coordinator. Set by `syncopate run`; under other launchers by the user, for
/// ranks on several hosts.
constexpr const char* coordinator_variable = "SYNCOPATE_COORDINATOR";

/// The values that `syncopate run` passes by environment variables to each program that it starts.
struct ProgramLaunch {
  std::string coordinator = {};  ///< HOST:PORT
  std::string key = {};          ///< the secret of the job
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;
  GivenOptions options = {};  ///< of the command line
  /// HOST:PORT at which the program listens; empty: a free port of the address from which it
  /// reaches the coordinator.
  std::string address = "127.0.0.1:0";
  bool encrypted = false;     ///< the key is one that the user has given to all hosts
  bool unencrypted = false;   ///< allows an address beyond loopback
  std::string key_file = {};  ///< passed instead of an encrypting key
  OwnPlace place = {};        ///< of the program, without an address

  friend bool operator==(const ProgramLaunch&, const ProgramLaunch&) = default;
};

/// The variables of one program.
std::vector<Variable> variables_of(const ProgramLaunch& launch);

/// The variables by which torch.distributed finds the other programs: RANK and the like. `here`:
/// the programs on this host. `master`: HOST:PORT of the store of rank 0.
std::vector<Variable> torch_variables_of(const ProgramLaunch& launch, std::uint32_t here,
                                         const std::string& master);

/// Empty if `syncopate run` has not started this process. Errors: ConfigError if variables
/// contradict each other, or if one is not a number; those of `read_key`.
std::optional<ProgramLaunch> program_launch_in(const Environment& environment);

}  // namespace syncopate
