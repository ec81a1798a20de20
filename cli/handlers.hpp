#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/time.hpp"
#include "data/batch.hpp"
#include "job/launch/launcher.hpp"
#include "job/spec/config.hpp"
#include "runtime/job_view.hpp"
#include "torch/factory.hpp"

namespace syncopate::cli {

/// How much a command says, and in which form.
struct OutputOptions {
  log::Verbosity verbosity = log::Verbosity::normal;
  bool json = false;
};

/// Options of `train` as a user typed them, by their names on the command line.
using GivenOptions = std::map<std::string, std::string>;

/// `syncopate train`, read and checked.
struct TrainCommand {
  TrainConfig config;          ///< resolved
  bool resumed = false;        ///< goes on with the run in `config.run_dir`
  bool named_run_dir = false;  ///< the user chose the run folder
  OutputOptions output = {};
  Duration gather_limit = std::chrono::seconds(60);  ///< for all members to join
  std::optional<Launch> launch = {};  ///< empty: this process starts all members itself
  GivenOptions given = {};
};

/// `syncopate coordinator`, read and checked.
struct CoordinatorCommand {
  TrainCommand job;
  std::string address;  ///< where it listens, HOST:PORT
  std::string token;
};

/// `syncopate worker` and `syncopate server`, read and checked as far as it goes without the job.
struct JoinCommand {
  Role role = Role::worker;
  std::string hub;  ///< where the coordinator listens, HOST:PORT
  std::string token;
  std::optional<std::uint32_t> index;  ///< empty: the next free one
  Duration gather_limit{};             ///< for the coordinator to appear
  GivenOptions given;
  std::uint32_t threads = 1;  ///< that this process is to have room for
  log::Verbosity verbosity = log::Verbosity::normal;
  bool launched =
      false;  ///< by what also started the coordinator, which tells the user of failures
};

/// `syncopate networks`, read and checked.
struct NetworksCommand {
  SampleShape input;
  std::uint32_t classes = 10;
};

struct CompareCommand;  // cli/compare/comparison.hpp
struct BenchCommand;    // cli/bench/command.hpp
struct DoctorCommand;   // cli/doctor/command.hpp

/// What the commands do that start processes or need libtorch. `syncopate` fills these with a jump into
/// `syncopate-torch`, which fills them with the work itself.
struct Handlers {
  std::function<int(const TrainCommand&)> train;
  std::function<int(const CoordinatorCommand&)> coordinate;
  std::function<int(const JoinCommand&)> join;
  std::function<int(const CompareCommand&)> compare;
  std::function<int(const BenchCommand&)> bench;
  std::function<int(const DoctorCommand&)> doctor;
  std::function<std::vector<torch_backend::NetworkFacts>(const NetworksCommand&)> networks;
  /// By the optimizer's name; empty where no libtorch is at hand, which leaves the rate open.
  std::function<double(Optimizer)> usual_learning_rate;
};

}  // namespace syncopate::cli
