#pragma once

#include <memory>

#include "job/roles/job.hpp"
#include "membership/member_link.hpp"
#include "runtime/world.hpp"

namespace syncopate::cli {

/// A process that has all it needs to join its job: what it tells of itself, and what it then does.
/// Refers to the job.
class Candidate {
 public:
  explicit Candidate(wire::Join join) : join_(std::move(join)) {}
  virtual ~Candidate() = default;

  /// Joins at the coordinator, to which the transport is connected, takes its part, and leaves.
  /// Errors: what ended the job instead.
  void take_part(World& world);

 private:
  virtual void play(World& world, MemberLink& link) = 0;

  wire::Join join_;
};

// Errors: ConfigError, DataError.
std::unique_ptr<Candidate> make_worker(const Job& job, Rank rank);
std::unique_ptr<Candidate> make_server(const Job& job, Rank shard);
std::unique_ptr<Candidate> make_evaluator(const Job& job);

/// What every node tells of itself.
std::string host_name();
std::uint32_t process_id();

}  // namespace syncopate::cli
