#include <fmt/format.h>

#include <vector>

#include "base/errors.hpp"
#include "collective/reducer.hpp"
#include "kernels/reduce.hpp"
#include "transport/transport.hpp"

namespace syncopate {

const ReducerSpec& mpi_reducer();

namespace {

/// Returns all other ranks as missing: the library below the transport does not report which of
/// them are late.
std::vector<Rank> others_of(const Group& group) {
  std::vector<Rank> others;
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    if (Rank{rank} != group.rank()) {
      others.push_back(group.rank_in_job(Rank{rank}));
    }
  }
  return others;
}

NativeAllreduce& native_of(Group& group) {
  NativeAllreduce* const native = group.transport().native_allreduce();
  if (native == nullptr) {
    throw ConfigError("--aggregate mpi requires --transport mpi; choose another aggregate or auto");
  }
  if (native->size() != group.size()) {
    throw ConfigError(
        fmt::format("--aggregate mpi requires every MPI rank to be a worker ({} ranks, {} "
                    "workers); choose another aggregate or auto",
                    native->size(), group.size()));
  }
  return *native;
}

/// The allreduce of the MPI library below the transport. Only on request.
class MpiReducer final : public Reducer {
 public:
  explicit MpiReducer(Group& group) : group_(group), native_(native_of(group)) {}

  void reduce(const Contribution& mine) override {
    const std::span<float> values = mine.values.floats();
    scale(values, mine.factor);
    group_.await([&](TimePoint until) { native_.allreduce(values, until); },
                 {.operation = "allreduce", .missing = [&] { return others_of(group_); }});
  }

 private:
  Group& group_;
  NativeAllreduce& native_;
};

}  // namespace

const ReducerSpec& mpi_reducer() {
  static const ReducerSpec spec{
      .name = "mpi",
      .transport = "mpi",
      .make = [](Group& group, const AmongLeaders&) -> std::unique_ptr<Reducer> {
        return std::make_unique<MpiReducer>(group);
      }};
  return spec;
}

}  // namespace syncopate
