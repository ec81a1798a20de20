#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "transport/mpi/engine.hpp"

namespace syncopate::mpi {

/// `MPI_Allreduce`, of the ranks that take part.
///
/// No rank calls it before all have come, which a barrier tells that can be left: so it never blocks for longer than the
/// sum takes, and burns no core for a rank that is late. Who waits looks after MPI meanwhile, so that no other thread
/// has to be woken.
class MpiAllreduce {
 public:
  /// `form_reducing_group` has made the group, of so many ranks.
  MpiAllreduce(Engine& engine, std::uint32_t ranks) : engine_(engine), ranks_(ranks) {}

  std::uint32_t size() const { return ranks_; }
  /// As `NativeAllreduce::allreduce`; `check` throws where to wait for the others is in vain.
  void run(std::span<float> values, TimePoint deadline, const std::function<void()>& check);

 private:
  Engine& engine_;
  const std::uint32_t ranks_;
  std::optional<Calls::Request> all_are_here_;  ///< of a sum that was waited for in vain
};

}  // namespace syncopate::mpi
