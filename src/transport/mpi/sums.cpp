#include "transport/mpi/sums.hpp"

#include <algorithm>

#include "base/errors.hpp"

namespace syncopate::mpi {
namespace {

/// MPI counts in int.
constexpr std::size_t most_values = std::size_t{1} << 30;

}  // namespace

void Sums::sum(std::span<float> values, TimePoint deadline, const std::function<void()>& check) {
  Calls::Request all_are_here;
  {
    const auto turn = engine_.take_turn();
    if (broken_) {
      throw InternalError("a sum by MPI was left before; no other can follow");
    }
    broken_ = true;
    all_are_here = engine_.calls().barrier(Calls::Ranks::summing);
  }
  engine_.await(all_are_here, deadline, false, check);
  while (!values.empty()) {
    const auto part = values.first(std::min(values.size(), most_values));
    Calls::Request summing;
    {
      const auto turn = engine_.take_turn();
      summing = engine_.calls().sum(part);
    }
    engine_.await(summing, no_deadline, true);
    values = values.subspan(part.size());
  }
  const auto turn = engine_.take_turn();
  broken_ = false;
}

}  // namespace syncopate::mpi
