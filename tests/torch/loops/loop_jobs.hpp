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

/// Runs programs as threads of this process, together with their coordinator.
class ThreadedPrograms {
 public:
  explicit ThreadedPrograms(std::uint32_t programs) : programs_(programs), coordinator_(programs) {}

  using Program = std::function<void(const JobEntry& entry)>;
  /// Runs the program in a thread for each worker, and the coordinator to its end. Returns for each
  /// program the message of the error that ended it; empty if it ended without one.
  std::vector<std::string> run(const Program& program);

  /// Returns the message of the error that ended the job. Call it after `run`.
  const std::string& failure() const { return failure_; }

 private:
  std::uint32_t programs_;
  std::string failure_;
  ProgramCoordinator coordinator_;
};

/// Trains for `epochs` epochs over the small dataset by SGD with momentum 0.9 and learning rate
/// 0.1. Returns the final parameters.
std::vector<float> train_by_loop(const InitOptions& init, std::size_t batch_size, int epochs,
                                 const DistributedOptions& options = {});

/// Returns the message of the ConfigError that `body` throws.
std::string refusal(const std::function<void()>& body);

}  // namespace syncopate::test
