#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "transport/mpi/engine.hpp"

namespace syncopate::mpi {

/// `MPI_Allreduce` of the ranks that take part.
///
/// A rank first waits in a non-blocking barrier until all ranks have come, and can stop waiting. So
/// the blocking call takes no longer than the allreduce itself, and no core for a late rank. The
/// waiting thread polls MPI meanwhile, so that no other thread has to wake.
class MpiAllreduce {
 public:
  /// `form_reducing_group` has made the group, of `ranks` ranks.
  MpiAllreduce(Engine& engine, std::uint32_t ranks) : engine_(engine), ranks_(ranks) {}

  std::uint32_t size() const { return ranks_; }
  /// As `NativeAllreduce::allreduce`; `check` throws where the others cannot come any more.
  void run(std::span<float> values, TimePoint deadline, const std::function<void()>& check);

 private:
  Engine& engine_;
  const std::uint32_t ranks_;
  std::optional<Calls::Request> all_are_here_;  ///< the barrier of an allreduce that timed out
};

}  // namespace syncopate::mpi
