#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "data/batch.hpp"
#include "torch/factory.hpp"
#include "train/config.hpp"

namespace syncopate::cli {

/// How much a command says, and in which form.
struct OutputOptions {
  log::Verbosity verbosity = log::Verbosity::normal;
  bool json = false;
};

/// `syncopate train`, read and checked.
struct TrainCommand {
  TrainConfig config;          ///< resolved
  bool resumed = false;        ///< goes on with the run in `config.run_dir`
  bool named_run_dir = false;  ///< the user chose the run folder
  OutputOptions output = {};
};

/// `syncopate networks`, read and checked.
struct NetworksCommand {
  SampleShape input;
  std::uint32_t classes = 10;
};

/// What the commands do that need libtorch. `syncopate` fills these with a jump into
/// `syncopate-torch`, which fills them with the work itself.
struct Handlers {
  std::function<int(const TrainCommand&)> train;
  std::function<std::vector<torch_backend::NetworkFacts>(const NetworksCommand&)> networks;
  /// By the optimizer's name; empty where no libtorch is at hand, which leaves the rate open.
  std::function<double(const std::string&)> usual_learning_rate;
};

}  // namespace syncopate::cli
