#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/time.hpp"
#include "job/launch/launcher.hpp"
#include "job/launch/own_place.hpp"
#include "runtime/job_view.hpp"
#include "spec/config.hpp"
#include "spec/config_fields.hpp"

namespace syncopate {

/// The options that the user gave, by their names on the command line.
using GivenOptions = std::map<std::string, std::string>;

/// A training job to start on this machine, or to take part in as a rank of a launcher.
struct JobRequest {
  TrainConfig config;                                 ///< resolved
  bool resumed = false;                               ///< continues the run in `config.run_dir`
  bool named_run_dir = false;                         ///< the user chose the run folder
  log::Verbosity verbosity = log::Verbosity::normal;  ///< of the log of every process
  Duration gather_limit = std::chrono::seconds(60);   ///< for all members to join
  std::optional<Launch> launch = {};  ///< empty: this process starts all members itself
  GivenOptions given = {};
};

/// A job whose workers and servers are started by hand.
struct CoordinateRequest {
  JobRequest job;
  std::string address;  ///< HOST:PORT at which the coordinator listens
  std::string key;      ///< that encrypts the job; empty: a new one, for a job on this host
};

/// A worker or a server that joins a job by hand.
struct JoinRequest {
  Role role = Role::worker;
  std::string address;  ///< HOST:PORT at which the coordinator listens
  std::string token;
  OwnPlace place = {};
  bool encrypted = false;              ///< the token is a key that the user has given
  std::optional<std::uint32_t> index;  ///< empty: the next free one
  Duration gather_limit{};             ///< for the coordinator to appear
  GivenOptions given;
  std::uint32_t threads = 1;  ///< for computation in this process
  log::Verbosity verbosity = log::Verbosity::normal;
  bool launched =
      false;  ///< by the launcher that also started the coordinator, which reports errors
};

/// The part of a job on several hosts that one host starts.
struct HostPart {
  std::uint32_t first = 0;   ///< rank of the first program
  std::uint32_t count = 0;   ///< of programs
  bool coordinates = false;  ///< here, at `address`
  std::string address;       ///< HOST:PORT of the coordinator
  std::filesystem::path key_file;
  OwnPlace place = {};  ///< of its programs
};

/// Programs to start as the workers of one job. Each one has its own training loop.
struct ProgramsRequest {
  std::vector<std::string> command;   ///< the program and its arguments, the same for all
  std::uint32_t workers = 1;          ///< of the job
  std::optional<HostPart> part = {};  ///< empty: all of them on this host
  GivenOptions given = {};            ///< of `loop_options`; the programs may give others
  TrainConfig config;       ///< the configuration that follows from `given`, as far as it is known
  Duration gather_limit{};  ///< for all programs to join, counted from the first one
  log::Verbosity verbosity = log::Verbosity::normal;
};

/// The configuration of a process that joins `job`: its own data folder, run folder, device and
/// threads if `given` names them; everything else is the job's. `whose` names the job.
/// Errors: ConfigError if the user expects another value than the job has.
TrainConfig config_of_joiner(const TrainConfig& job, const GivenOptions& given,
                             std::string_view whose);

/// Refuses the configuration of a job if a coordinator of this build cannot have sent it. `whose`
/// names the job. Errors: ConfigError.
void check_described(const TrainConfig& job, std::string_view whose);

/// True for a field that belongs to one machine, so that members of a job may differ in it.
bool is_of_the_machine(const Field& field);

/// The value of a field for comparison: a relative path and its absolute form compare equal.
OptionValue comparable_value(const Field& field, const TrainConfig& config);

/// The value of a field for messages; "not set" for an empty one.
std::string shown_value(const Field& field, const TrainConfig& config);

/// "--batch-size".
std::string option_of(const Field& field);

/// Errors: ConfigError, with the option's name in front.
void set_from_option(const Field& field, TrainConfig& config, const std::string& text);

}  // namespace syncopate
