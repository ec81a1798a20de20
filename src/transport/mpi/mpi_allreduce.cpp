#include "transport/mpi/mpi_allreduce.hpp"

#include <algorithm>

namespace syncopate::mpi {
namespace {

/// MPI counts in int.
constexpr std::size_t most_values = std::size_t{1} << 30;

}  // namespace

void MpiAllreduce::run(std::span<float> values, TimePoint deadline,
                       const std::function<void()>& check) {
  Calls::Request all_are_here;
  {
    const auto lock = engine_.acquire_lock();
    if (!all_are_here_) {
      all_are_here_ = engine_.calls().barrier(Calls::Ranks::reducing);
    }
    all_are_here = *all_are_here_;
  }
  engine_.await(all_are_here, deadline, check);
  all_are_here_.reset();
  while (!values.empty()) {
    const auto part = values.first(std::min(values.size(), most_values));
    engine_.calls().allreduce(part);
    values = values.subspan(part.size());
  }
}

}  // namespace syncopate::mpi
