#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/batch.hpp"
#include "job/launch/job_request.hpp"
#include "torch/factory.hpp"

namespace syncopate::cli {

/// `syncopate train`, read and checked.
struct TrainCommand {
  JobRequest request;
  bool json = false;  ///< shows the job as lines of JSON
};

/// `syncopate coordinator`, read and checked.
struct CoordinatorCommand {
  CoordinateRequest request;
  bool json = false;
};

/// `syncopate networks`, read and checked.
struct NetworksCommand {
  SampleShape input;
  std::uint32_t classes = 10;
};

struct CompareCommand;  // cli/compare/comparison.hpp
struct BenchCommand;    // cli/bench/bench_command.hpp
struct DoctorCommand;   // cli/doctor/doctor_command.hpp

/// What the commands do that start processes or need libtorch. `syncopate` fills these with a jump
/// into `syncopate-torch`, which fills them with the work itself.
struct Handlers {
  std::function<int(const TrainCommand&)> train;
  std::function<int(const CoordinatorCommand&)> coordinate;
  std::function<int(const JoinRequest&)> join;
  std::function<int(const CompareCommand&)> compare;
  std::function<int(const BenchCommand&)> bench;
  std::function<int(const DoctorCommand&)> doctor;
  std::function<std::vector<torch_backend::NetworkFacts>(const NetworksCommand&)> networks;
  /// By the optimizer's name; empty where no libtorch is at hand, which leaves the rate open.
  std::function<double(Optimizer)> usual_learning_rate;
};

/// Parses the command line, does what it says, and gives the exit status
/// (`job/launch/exit_status.hpp`). Whatever was typed wrong becomes one line on standard error.
/// Never throws.
int run_cli(int argc, char** argv, const Handlers& handlers);

}  // namespace syncopate::cli
