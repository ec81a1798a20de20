#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/host/coordinate.hpp"
#include "job/launch/run_claim.hpp"
#include "job/program/loop_definition.hpp"
#include "membership/coordinator.hpp"
#include "transport/shm/segment.hpp"

namespace syncopate {

/// The training job of programs, at its coordinator: the run folder, the memory of all workers, and
/// the servers, which are tasks of this process.
class ProgramTraining {
 public:
  struct Options {
    LoopDefinition definition;
    std::uint32_t number = 1;  ///< among the trainings of these programs
    std::uint32_t programs = 1;
    Duration gather_limit{};
    std::function<void(const Recorder::Json&)> emit;
    std::function<bool()> interrupted;
    std::string name;
    std::function<void(const std::string&)> hung;
    double wall_time = 0;
  };

  /// Makes the run folder. Errors: ConfigError, DataError.
  explicit ProgramTraining(Options options);

  /// What the programs need to join it.
  wire::Training described() const;

  /// Coordinates the job to its end in the world of node 0, which `service` uses, too. `servers`:
  /// how servers connect to it; the address and the transport are filled in. Errors: the error that
  /// ended the job.
  void run(World& world, NodeService& service, CoordinatorEndpoint servers);

 private:
  void keep_folder();

  Options options_;
  RunClaim claim_;
  LoopSite site_;
  std::optional<shm::Segment> memory_;  ///< of all workers
  std::vector<std::unique_ptr<RoleRunner>> servers_;
};

}  // namespace syncopate
