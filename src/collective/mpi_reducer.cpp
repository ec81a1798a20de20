#include <fmt/format.h>

#include "base/errors.hpp"
#include "collective/native_reducer.hpp"

namespace syncopate {

const ReducerSpec& mpi_reducer();

namespace {

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

}  // namespace

/// The allreduce of the MPI library below the transport. Only on request.
const ReducerSpec& mpi_reducer() {
  static const ReducerSpec spec{
      .name = "mpi",
      .transport = "mpi",
      .make = [](Group& group, const ReducerContext&) -> std::unique_ptr<Reducer> {
        return std::make_unique<NativeReducer>(group, native_of(group));
      }};
  return spec;
}

}  // namespace syncopate
