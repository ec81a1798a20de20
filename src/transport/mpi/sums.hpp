#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "transport/mpi/engine.hpp"

namespace syncopate::mpi {

/// `MPI_Iallreduce`, of the ranks that take part.
///
/// No rank lends MPI its values before all have come, which a barrier tells: who waits for a rank that does not come
/// can still leave. Who sums also looks after MPI meanwhile, so that no other thread has to be woken.
class Sums {
 public:
  /// `form_summing` has made the group, of so many ranks.
  Sums(Engine& engine, std::uint32_t ranks) : engine_(engine), ranks_(ranks) {}

  std::uint32_t size() const { return ranks_; }
  /// As `NativeAllreduce::sum`; `check` throws where to wait for the others is in vain.
  void sum(std::span<float> values, TimePoint deadline, const std::function<void()>& check);

 private:
  Engine& engine_;
  const std::uint32_t ranks_;
  bool broken_ = false;  ///< somebody left a sum that others wait in. With the turn
};

}  // namespace syncopate::mpi
