#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>
#include <syncopate/torch.hpp>
#include <vector>

#include "tests/support/program_coordinator.hpp"
#include "tests/torch/loops/small_problem.hpp"

namespace syncopate::test {

/// Programs that are threads of this process, and their coordinator.
class ThreadedPrograms {
 public:
  explicit ThreadedPrograms(std::uint32_t programs) : programs_(programs), coordinator_(programs) {}

  using Program = std::function<void(const JobEntry& entry)>;
  /// Runs the program once for each worker, in a thread each, and then the coordinator to its end.
  /// Returns the message of the error that ended each; empty for one that ended well.
  std::vector<std::string> run(const Program& program);

  /// The message of the error that ended the job, after `run`.
  const std::string& failure() const { return failure_; }

 private:
  std::uint32_t programs_;
  std::string failure_;
  ProgramCoordinator coordinator_;
};

/// A loop of `epochs` epochs over the small dataset by SGD with momentum 0.9 and rate 0.1. Returns
/// the final parameters. `scheme` goes to the optimizer; empty: that of `init`.
std::vector<float> train_by_loop(const InitOptions& init, std::size_t batch_size, int epochs,
                                 const std::string& scheme = "");

/// The message of the ConfigError that `body` throws.
std::string refusal(const std::function<void()>& body);

}  // namespace syncopate::test
