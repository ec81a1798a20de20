#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collective/allreduce.hpp"
#include "collective/group.hpp"
#include "job/launch/program_environment.hpp"
#include "job/program/collective_queue.hpp"
#include "job/program/program_messages.hpp"
#include "runtime/real_world.hpp"

namespace syncopate {

/// The node of one program among all programs of its job. Its collectives need no training job.
///
/// Thread: one.
class ProgramNode {
 public:
  /// Waits until all programs have come. Errors: ConfigError, where the coordinator refuses this
  /// one; PeerLost, TimedOut.
  explicit ProgramNode(const ProgramLaunch& launch);
  /// Leaves: the others see this node as lost.
  ~ProgramNode();
  ProgramNode(const ProgramNode&) = delete;
  ProgramNode& operator=(const ProgramNode&) = delete;

  Group& group() { return *group_; }
  Allreduce& allreduce() { return *allreduce_; }
  /// Carries out what uses the group.
  CollectiveQueue& collectives() { return *collectives_; }

  /// Says what this program trains, and waits until all programs have said so. Errors: ConfigError,
  /// where they differ; the error that ended the job.
  wire::Training define(const LoopDefinition& definition);

 private:
  wire::ToProgram receive();

  RealWorld world_;
  std::optional<Group> group_;
  std::optional<Allreduce> allreduce_;
  std::optional<CollectiveQueue> collectives_;  ///< last: its operations use the members above
};

}  // namespace syncopate
