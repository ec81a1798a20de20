#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "runtime/view.hpp"

namespace syncopate {

/// Whom a job goes on without, as its coordinator says, for workers who meet each other all the same.
///
/// Thread: any; one at a time waits in `await_more`.
class FailureListener {
 public:
  virtual ~FailureListener() = default;

  /// Ranks, in the order in which the coordinator dropped them, which is the same for all members.
  virtual std::vector<Rank> lost() const = 0;

  /// Tells the coordinator that this worker's last meeting is over. Once.
  virtual void finished() = 0;
  /// Whether that of every worker is who is still there, so that nobody will ask for anything more.
  virtual bool all_finished() const = 0;

  /// Blocks until more than `known` are lost, or all have finished. False: the deadline has passed.
  /// Errors: what ended the job.
  virtual bool await_more(std::size_t known, TimePoint deadline) = 0;
};

}  // namespace syncopate
