#pragma once

#include <cstdint>
#include <span>

#include "base/time.hpp"

namespace syncopate {

/// Sums that the library below a transport makes itself: an MPI knows its network.
///
/// Takes part: every node that has one, all of them in every sum, in the same order.
/// Invariant:  that all have the same bits is the library's promise, which MPI advises its makers to keep and
///             Open MPI and MPICH do.
/// Thread:     one sum at a time.
class NativeAllreduce {
 public:
  virtual ~NativeAllreduce() = default;

  /// How many nodes take part.
  virtual std::uint32_t size() const = 0;

  /// Replaces `values` by their sum over all who take part. Shape: as long on every node.
  ///
  /// Errors: TimedOut, where not all have come: `values` are untouched, and it may be called again; what the transport
  ///         was cancelled with, which nobody can sum after. From the moment at which all have come it goes on to its
  ///         end, or to that of the job.
  virtual void allreduce(std::span<float> values, TimePoint deadline) = 0;
};

}  // namespace syncopate
