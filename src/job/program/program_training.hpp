#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/host/coordinate.hpp"
#include "job/launch/run_claim.hpp"
#include "job/program/program_messages.hpp"
#include "runtime/real_world.hpp"

namespace syncopate {

/// The training job of programs, as its coordinator: the run folder, the transport that workers
/// join, and the servers, which are tasks of this process.
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
    std::string address = "127.0.0.1:0";  ///< as `ProgramHost::Options::address`
    bool unencrypted = false;
  };

  /// Makes the run folder, and listens. Errors: ConfigError, DataError.
  explicit ProgramTraining(Options options);

  /// What the programs need to join it.
  wire::Training described() const;

  /// Coordinates the job to its end. Errors: the error that ended it.
  void run();

 private:
  void keep_folder();

  Options options_;
  RunClaim claim_;
  LoopSite site_;
  std::optional<shm::Segment> memory_;  ///< of all workers
  std::vector<std::unique_ptr<RoleRunner>> servers_;
  std::string token_;
  std::string address_;
  std::optional<RealWorld> world_;
  std::optional<InProcessMembers> running_;  ///< last: it uses the members above
};

}  // namespace syncopate
