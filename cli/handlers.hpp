#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/batch.hpp"
#include "job/launch/job_request.hpp"
#include "torch/factory.hpp"

namespace syncopate::cli {

/// The parsed command line of `syncopate train`.
struct TrainCommand {
  JobRequest request;
  bool json = false;  ///< shows the job as lines of JSON
};

/// The parsed command line of `syncopate coordinator`.
struct CoordinatorCommand {
  CoordinateRequest request;
  bool json = false;
};

/// The parsed command line of `syncopate run`.
struct RunCommand {
  ProgramsRequest request;
  bool json = false;
};

/// The parsed command line of `syncopate networks`.
struct NetworksCommand {
  SampleShape input;  ///< a height or width of 0 is left open, see `all_network_facts`
  std::uint32_t classes = 10;
};

struct CompareCommand;  // cli/compare/comparison.hpp
struct BenchCommand;    // cli/bench/bench_command.hpp
struct DoctorCommand;   // cli/doctor/doctor_command.hpp
struct ProfileCommand;  // cli/bench/device_profiles.hpp

/// The actions of the commands that start processes or need libtorch. In `syncopate`, an action
/// replaces the process by `syncopate-torch` (`run`: by `syncopate-run`), which parses the same
/// command line and does the work; only `compare` works in `syncopate` itself.
struct Handlers {
  std::function<int(const TrainCommand&)> train;
  std::function<int(const CoordinatorCommand&)> coordinate;
  std::function<int(const JoinRequest&)> join;
  std::function<int(const CompareCommand&)> compare;
  std::function<int(const BenchCommand&)> bench;
  std::function<int(const DoctorCommand&)> doctor;
  std::function<std::vector<torch_backend::NetworkFacts>(const NetworksCommand&)> networks;
  /// Returns an optimizer's default learning rate. Empty in a program without libtorch, which
  /// leaves the rate unset.
  std::function<double(Optimizer)> usual_learning_rate;
  std::function<int(const RunCommand&)> run = {};
  std::function<int(const ProfileCommand&)> profile = {};
};

/// Parses the command line, runs the command, and returns the exit status
/// (`job/launch/exit_status.hpp`). A wrong argument becomes one line on standard error. Never
/// throws.
int run_cli(int argc, char** argv, const Handlers& handlers);

}  // namespace syncopate::cli
