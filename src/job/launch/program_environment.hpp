#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/launch/environment.hpp"
#include "job/launch/job_request.hpp"

namespace syncopate {

/// What `syncopate run` passes to each program that it starts, by environment variables; the
/// address is that of other launchers.
struct ProgramLaunch {
  std::string coordinator;  ///< HOST:PORT
  std::string key;          ///< the secret of the job
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;
  GivenOptions options = {};            ///< of the command line
  std::string address = "127.0.0.1:0";  ///< HOST:PORT where the program listens
  bool unencrypted = false;             ///< it may be beyond loopback

  friend bool operator==(const ProgramLaunch&, const ProgramLaunch&) = default;
};

/// The variables of one program.
std::vector<Variable> variables_of(const ProgramLaunch& launch);

/// The variables by which torch.distributed finds the other programs, all on this host: RANK and
/// the like, and MASTER_PORT.
std::vector<Variable> torch_variables_of(const ProgramLaunch& launch, const std::string& port);

/// Empty where no launcher of Syncopate has started this process. Errors: ConfigError, for
/// variables that contradict each other, or that are no numbers.
std::optional<ProgramLaunch> program_launch_in(const Environment& environment);

}  // namespace syncopate
